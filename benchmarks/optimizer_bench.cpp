/// The optimizer step of every update rule beside the memory bandwidth of the machine, measured in
/// the same rounds: GB/s of what a rule must read and write, and its share of the bandwidth.
///
///     cmake --preset release -DSTRETTO_BENCHMARKS=ON
///     cmake --build build/release --target optimizer_bench
///     build/release/optimizer_bench --elements=60000000 --threads=2
///
/// Options: --elements=N (numbers in the model), --threads=T, --rounds=R (the best counts),
/// --names=adam,sgd (default: all), --json (one line for each rule). The model is made of matrices
/// [256, 1024] and vectors [1024], in turn. The bandwidth is the better of STREAM's triad
/// a = b + s c, whose stores first fetch what they overwrite, and of a = a + s b, which as an
/// optimizer does updates in place; both count 12 bytes an element.

#include <torch/torch.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "optim/optimizer.h"

namespace stretto::optim {
namespace {

struct Settings {
  int64_t elements = 8'000'000, threads = 1, rounds = 7;
  std::vector<std::string> names;
  bool json = false;
};

/// A rule and the bytes that one element costs it: fp32 numbers read and written.
struct Cost {
  const char* name;
  int64_t bytes;
};
constexpr Cost kCosts[] = {
    {"adam", 28},                                      // p, m, v read and written, g read
    {"adamw", 28},                                     // the same
    {"radam", 28},                                     // the same
    {"sgd", 20},                                       // p, u read and written, g read
    {"adagrad", 20},   {"rmsprop", 28}, {"lars", 28},  // a reduction over p and g, then as sgd
    {"larc", 28},                                      // the same
    {"novograd", 28},                                  // the same
    {"lamb", 40},       // a reduction as adam without writing p, then p, m, v read, p written
    {"adafactor", 24},  // g three times, p read twice and written
};

struct Model : torch::nn::Module {
  explicit Model(int64_t elements) {
    torch::manual_seed(1);
    for (int64_t i = 0; elements > 0; ++i) {
      const bool matrix = i % 2 == 0;
      auto values = matrix ? torch::randn({256, 1024}) : torch::randn({1024});
      elements -= values.numel();
      register_parameter("tensor" + std::to_string(i), values * 0.02);
    }
  }
};

template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Buffers of the triad: far larger than any cache.
class Triad {
 public:
  double bytes_per_second() {
    const double bytes = 12.0 * kElements;
    const double fetching = seconds_of([&] { at::add_out(a_, b_, c_, 0.5); });
    return bytes / std::min(fetching, seconds_of([&] { a_.add_(b_, 0.5); }));
  }

 private:
  static constexpr int64_t kElements = 60'000'000;
  torch::Tensor a_ = torch::ones({kElements}), b_ = torch::ones({kElements}),
                c_ = torch::ones({kElements});
};

/// One rule on an arena of its own.
struct Subject {
  Cost cost;
  Model model;
  Arena arena;
  std::unique_ptr<Optimizer> optimizer;
  int64_t number = 0;
  double best = std::numeric_limits<double>::infinity();

  Subject(const Cost& what, int64_t elements)
      : cost(what),
        model(elements),
        arena(model),
        optimizer(make_optimizer({.name = what.name, .weight_decay = 0.01}, arena)) {
    arena.grads().copy_(torch::randn_like(arena.grads()) * 0.01);
    step();  // touches all pages
  }
  void step() { optimizer->step(arena, {.lr = 1e-4, .grad_scale = 0.5, .number = ++number}); }
};

void print_results(const Settings& settings, const std::vector<std::unique_ptr<Subject>>& subjects,
                   double bandwidth) {
  if (!settings.json) {
    std::printf("memory bandwidth %.1f GB/s, %lld threads\n", bandwidth / 1e9,
                static_cast<long long>(settings.threads));
    std::printf("%-10s %10s %10s %10s\n", "rule", "ms", "GB/s", "share");
  }
  for (const auto& subject : subjects) {
    const double bytes = static_cast<double>(subject->cost.bytes * subject->arena.num_parameters());
    const double rate = bytes / subject->best;
    if (settings.json) {
      std::printf(
          "{\"rule\": \"%s\", \"elements\": %lld, \"threads\": %lld, \"seconds\": %.9f, "
          "\"bytes_per_second\": %.6g, \"bandwidth\": %.6g}\n",
          subject->cost.name, static_cast<long long>(subject->arena.num_parameters()),
          static_cast<long long>(settings.threads), subject->best, rate, bandwidth);
    } else {
      std::printf("%-10s %10.3f %10.1f %9.0f%%\n", subject->cost.name, subject->best * 1e3,
                  rate / 1e9, 100 * rate / bandwidth);
    }
  }
}

void run(const Settings& settings) {
  at::set_num_threads(static_cast<int>(settings.threads));
  const torch::NoGradGuard no_grad;
  Triad triad;
  double bandwidth = 0;
  std::vector<std::unique_ptr<Subject>> done;
  for (const Cost& cost : kCosts) {
    const auto& names = settings.names;
    if (!names.empty() && std::find(names.begin(), names.end(), cost.name) == names.end()) continue;
    auto subject = std::make_unique<Subject>(cost, settings.elements);
    for (int64_t round = 0; round < settings.rounds; ++round) {
      bandwidth = std::max(bandwidth, triad.bytes_per_second());
      subject->step();  // the triad has emptied the caches; torch's steps follow one another too
      subject->best = std::min(subject->best, seconds_of([&] { subject->step(); }));
    }
    done.push_back(std::move(subject));
  }
  print_results(settings, done, bandwidth);
}

/// "--name=value" into a setting; false if it is none.
bool take(std::string_view argument, Settings& settings) {
  if (argument == "--json") return settings.json = true;
  const size_t equals = argument.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view key = argument.substr(0, equals), value = argument.substr(equals + 1);
  if (key == "--names") {
    settings.names = split(value, ',');
    return std::all_of(settings.names.begin(), settings.names.end(), [](const std::string& name) {
      return std::any_of(std::begin(kCosts), std::end(kCosts),
                         [&](const Cost& cost) { return name == cost.name; });
    });
  }
  int64_t* number = key == "--elements"  ? &settings.elements
                    : key == "--threads" ? &settings.threads
                    : key == "--rounds"  ? &settings.rounds
                                         : nullptr;
  if (number == nullptr) return false;
  const auto [end, error] = std::from_chars(value.begin(), value.end(), *number);
  return error == std::errc() && end == value.end() && *number >= 1;
}

}  // namespace
}  // namespace stretto::optim

int main(int argc, char** argv) {
  stretto::optim::Settings settings;
  for (int i = 1; i < argc; ++i) {
    if (stretto::optim::take(argv[i], settings)) continue;
    std::fprintf(
        stderr,
        "error: cannot use %s\n  optimizer_bench [--elements=N] [--threads=T] [--rounds=R] "
        "[--names=adam,sgd] [--json]\n",
        argv[i]);
    return 2;
  }
  stretto::optim::run(settings);
}
