/// The optimizer step of every update rule beside the memory bandwidth of the machine, measured in
/// the same rounds: GB/s of what a rule must read and write, and its share of the bandwidth.
///
///     cmake --preset release -DSTRETTO_BENCHMARKS=ON
///     cmake --build build/release --target optimizer_bench
///     build/release/optimizer_bench --elements=60000000 --threads=2
///
/// Options: --elements=N (numbers in the model), --threads=T, --rounds=R, --names=adam,sgd
/// (default: all), --device=cuda, --json (one line for each rule, with the figures of every round).
/// The model is made of matrices [256, 1024] and vectors [1024], in turn. The bandwidth is the
/// better of STREAM's triad a = b + s c, whose stores first fetch what they overwrite, and of a = a
/// + s b, which as an optimizer does updates in place; both count 12 bytes an element. Each rule
/// and the bandwidth take turns; medians over rounds are printed, with the least and the most.
///
/// "norm" is no rule: it is the sum of squares of all gradients, by which an update is clipped and
/// by which values that are not finite are found. It only reads, so its bandwidth is that of
/// reading: the better of a sum and of a product of two vectors by libtorch. "norm+adam" is the
/// whole optimizer step of an update: the reduction and the pass.

#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "benchmarks/bench.h"
#include "kernels/kernels.h"
#include "optim/optimizer.h"

namespace stretto::optim {
namespace {

using benchmarks::median, benchmarks::seconds_of;

/// A rule and the bytes that one element costs it: fp32 numbers read and written.
struct Cost {
  const char* name;
  int64_t bytes;
};
constexpr Cost kCosts[] = {
    {"adam", 28},                                      // p, m, v read and written, g read
    {"adamw", 28},                                     // the same
    {"lazy_adam", 28},                                 // the same: there are no embeddings
    {"radam", 28},                                     // the same
    {"sgd", 20},                                       // p, u read and written, g read
    {"adagrad", 20},   {"rmsprop", 28}, {"lars", 28},  // a reduction over p and g, then as sgd
    {"larc", 28},                                      // the same
    {"novograd", 28},                                  // the same
    {"lamb", 40},       // a reduction as adam without writing p, then p, m, v read, p written
    {"ftrl", 28},       // p, sum, linear read and written, g read
    {"adafactor", 24},  // g three times, p read twice and written
    {"norm", 4},        // g
    {"norm+adam", 32},  // both, one after the other
};

constexpr bool has_norm(std::string_view rule) {
  return rule.starts_with("norm");
}
constexpr bool has_rule(std::string_view rule) {
  return rule != "norm";
}

struct Settings : benchmarks::CommonSettings {
  int64_t elements = 8'000'000, threads = 1;
  std::vector<std::string> names;
  bool json = false;

  bool take(std::string_view argument) {
    if (argument == "--json") return json = true;
    if (const auto value = benchmarks::value_of(argument, "--names")) {
      names = split(*value, ',');
      return std::all_of(names.begin(), names.end(), [](const std::string& name) {
        return std::any_of(std::begin(kCosts), std::end(kCosts),
                           [&](const Cost& cost) { return name == cost.name; });
      });
    }
    return CommonSettings::take(argument) ||
           benchmarks::take_number(argument, "--elements", elements) ||
           benchmarks::take_number(argument, "--threads", threads);
  }
};

struct Model : torch::nn::Module {
  Model(int64_t elements, at::Device device) {
    torch::manual_seed(1);
    for (int64_t i = 0; elements > 0; ++i) {
      const bool matrix = i % 2 == 0;
      auto values = matrix ? torch::randn({256, 1024}) : torch::randn({1024});
      elements -= values.numel();
      register_parameter("tensor" + std::to_string(i), values.mul_(0.02).to(device));
    }
  }
};

/// Buffers of the triad: far larger than any cache.
class Triad {
 public:
  explicit Triad(at::Device device) : device_(device) {}

  double bytes_per_second(std::string_view rule) { return has_rule(rule) ? updating() : reading(); }

 private:
  double reading() {
    const double one = seconds_of(device_, [&] { at::sum_out(sum_, a_, {0}); });
    const double two = seconds_of(device_, [&] { at::dot_out(sum_, a_, b_); });
    return std::max(4.0 * kElements / one, 8.0 * kElements / two);
  }
  double updating() {
    const double fetching = seconds_of(device_, [&] { at::add_out(a_, b_, c_, 0.5); });
    const double in_place = seconds_of(device_, [&] { a_.add_(b_, 0.5); });
    return 12.0 * kElements / std::min(fetching, in_place);
  }

  static constexpr int64_t kElements = 60'000'000;
  at::Device device_;
  torch::Tensor a_ = torch::ones({kElements}, device_), b_ = torch::ones({kElements}, device_),
                c_ = torch::ones({kElements}, device_);
  torch::Tensor sum_ = torch::zeros({}, device_);
};

/// What the rounds of one rule measured.
struct Result {
  Cost cost;
  int64_t elements = 0;
  std::vector<double> seconds = {}, bandwidth = {};

  int64_t bytes() const { return cost.bytes * elements; }
  /// Bytes a second of each round, and their share of the bandwidth of that round.
  std::vector<double> rates() const {
    std::vector<double> all;
    for (const double s : seconds) all.push_back(static_cast<double>(bytes()) / s);
    return all;
  }
  std::vector<double> shares() const {
    std::vector<double> all = rates();
    for (size_t i = 0; i < all.size(); ++i) all[i] /= bandwidth[i];
    return all;
  }
};

/// One rule on an arena of its own.
struct Subject {
  Model model;
  Arena arena;
  std::unique_ptr<Optimizer> optimizer;  // none for the norm
  bool reads_norm = false;
  int64_t number = 0;
  double sum_of_squares = 0;

  Subject(std::string_view rule, const Settings& settings)
      : model(settings.elements, settings.device()), arena(model) {
    reads_norm = has_norm(rule);
    if (has_rule(rule)) {
      const std::string_view name = rule.substr(reads_norm ? std::string_view("norm+").size() : 0);
      optimizer = make_optimizer({.name = std::string(name), .weight_decay = 0.01}, arena);
    }
    arena.grads().copy_(torch::randn_like(arena.grads()) * 0.01);
    step();  // touches all pages
  }

  void step() {
    if (reads_norm) sum_of_squares = kernels::sum_of_squares(arena.grads());
    if (optimizer) optimizer->step(arena, {.lr = 1e-4, .grad_scale = 0.5, .number = ++number});
  }
};

/// "12.3 (11.8 - 14.0)": the median, the least and the most.
std::string spread(const std::vector<double>& values, double unit, int decimals) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return fixed(median(values) / unit, decimals) + " (" + fixed(*least / unit, decimals) + " - " +
         fixed(*most / unit, decimals) + ")";
}

std::string json_list(const std::vector<double>& values, int decimals) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "[" : ", ") + fixed(value, decimals);
  return text + "]";
}

void print_table(const Settings& settings, const std::vector<Result>& results) {
  std::vector<double> bandwidth;
  for (const Result& r : results)
    bandwidth.insert(bandwidth.end(), r.bandwidth.begin(), r.bandwidth.end());
  std::printf("memory bandwidth %s GB/s, %lld numbers, %lld threads, %s, %lld rounds\n",
              spread(bandwidth, 1e9, 1).c_str(), static_cast<long long>(settings.elements),
              static_cast<long long>(settings.threads), settings.cuda ? "GPU" : "CPU",
              static_cast<long long>(settings.rounds));
  std::printf("%-10s %-26s %-26s %s\n", "rule", "ms", "GB/s", "% of the bandwidth");
  for (const Result& r : results)
    std::printf("%-10s %-26s %-26s %s\n", r.cost.name, spread(r.seconds, 1e-3, 3).c_str(),
                spread(r.rates(), 1e9, 1).c_str(), spread(r.shares(), 1e-2, 0).c_str());
}

void print_json(const Settings& settings, const Result& r) {
  std::printf(
      "{\"rule\": \"%s\", \"elements\": %lld, \"threads\": %lld, \"bytes\": %lld, "
      "\"seconds\": %s, \"bandwidth\": %s}\n",
      r.cost.name, static_cast<long long>(r.elements), static_cast<long long>(settings.threads),
      static_cast<long long>(r.bytes()), json_list(r.seconds, 9).c_str(),
      json_list(r.bandwidth, 0).c_str());
}

void run(const Settings& settings) {
  at::set_num_threads(static_cast<int>(settings.threads));
  const torch::NoGradGuard no_grad;
  Triad triad(settings.device());
  triad.bytes_per_second("");  // touches all pages
  std::vector<Result> results;
  for (const Cost& cost : kCosts) {
    const auto& names = settings.names;
    if (!names.empty() && std::find(names.begin(), names.end(), cost.name) == names.end()) continue;
    Subject subject(cost.name, settings);
    Result result{cost, subject.arena.num_parameters()};
    for (int64_t round = 0; round < settings.rounds; ++round) {
      result.bandwidth.push_back(triad.bytes_per_second(cost.name));
      subject.step();  // the triad has emptied the caches; torch's steps follow one another too
      result.seconds.push_back(seconds_of(settings.device(), [&] { subject.step(); }));
    }
    if (settings.json) print_json(settings, result);
    results.push_back(std::move(result));
  }
  if (!settings.json) print_table(settings, results);
}

}  // namespace
}  // namespace stretto::optim

int main(int argc, char** argv) {
  using namespace stretto;
  optim::run(benchmarks::read_settings<optim::Settings>(
      argc, argv,
      "optimizer_bench [--elements=N] [--threads=T] [--rounds=R] [--names=adam,sgd] "
      "[--device=cuda] [--json]"));
}
