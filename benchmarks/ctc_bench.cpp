// The CTC loss on packed rows, forward and backward, for benchmarks/ctc_beside_torch.py.
//
//     ctc_bench --serve [--threads=N]
//
// Reads jobs as lines of JSON, {"classes": C, "repeats": R, "batches": [{"frames": [T, …],
// "labels": [U, …]}, …]}, and answers each with the seconds of every batch: [both directions,
// forward], medians of the repeats. Scores are noise, labels drawn from all classes but the last
// one, which is the blank one.
#include <torch/torch.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "kernels/ctc/ctc.h"

namespace stretto::kernels {
namespace {

struct Settings : benchmarks::CommonSettings {
  int64_t threads = 2;
  bool serve = false;

  bool take(std::string_view argument) {
    if (argument == "--serve") return serve = true;
    return benchmarks::take_number(argument, "--threads", threads) ||
           CommonSettings::take(argument);
  }
};

/// Seconds of both directions, and of forward.
std::pair<double, double> time_of_batch(const nlohmann::json& batch, int64_t classes,
                                        int64_t repeats) {
  const Offsets frames = benchmarks::offsets_of(batch["frames"].get<std::vector<int64_t>>());
  const Offsets labels = benchmarks::offsets_of(batch["labels"].get<std::vector<int64_t>>());
  const int64_t num_frames = frames.values[-1].item<int64_t>();
  const at::Tensor scores = at::randn({num_frames, classes}).requires_grad_(true);
  const CtcTargets targets{
      .frames = frames,
      .labels = at::randint(classes - 1, {labels.values[-1].item<int64_t>()}, at::kLong),
      .label_offsets = labels,
      .blank = classes - 1};
  std::vector<double> both, forward;
  for (int64_t i = 0; i <= repeats; ++i) {
    scores.mutable_grad() = at::Tensor();
    at::Tensor loss;
    const double first =
        benchmarks::seconds_of(at::kCPU, [&] { loss = ctc_loss(scores, targets).each.sum(); });
    const double second = benchmarks::seconds_of(at::kCPU, [&] { loss.backward(); });
    if (i == 0) continue;  // which touches new memory
    forward.push_back(first);
    both.push_back(first + second);
  }
  return {benchmarks::median(both), benchmarks::median(forward)};
}

void serve_ctc() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto job = nlohmann::json::parse(line);
    auto answer = nlohmann::json::array();
    for (const auto& batch : job["batches"]) {
      const std::pair<double, double> times = time_of_batch(batch, job["classes"], job["repeats"]);
      answer.push_back({times.first, times.second});
    }
    std::cout << answer.dump() << std::endl;
  }
}

}  // namespace
}  // namespace stretto::kernels

int main(int argc, char** argv) {
  using namespace stretto;
  const char* usage = "ctc_bench --serve [--threads=N], with jobs as lines of JSON on stdin";
  const auto settings = benchmarks::read_settings<kernels::Settings>(argc, argv, usage);
  if (!settings.serve) {
    std::fprintf(stderr, "error: nothing to do\n  %s\n", usage);
    return 2;
  }
  at::set_num_threads(static_cast<int>(settings.threads));
  torch::manual_seed(1);
  kernels::serve_ctc();
  return 0;
}
