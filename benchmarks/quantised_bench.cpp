/// Products with few-bit weights beside those of fp32, at the sizes of models that run.
///
///     cmake --preset release -DSTRETTO_BENCHMARKS=ON
///     cmake --build build/release --target quantised_bench
///     build/release/quantised_bench --threads=1
///
/// prints for each size, rows of x and width of codes: microseconds of a product, gain on fp32 with
/// weights that were laid out before, billions of multiplications and additions a second, and
/// gigabytes of weights a second. Rounds of all forms take turns; times are medians, and a gain is
/// the median of those of single rounds. --level=NAME takes another processor level (avx512_bf16,
/// avx512_vnni, avx512, avx2, portable); --cold reads weights from memory: between two products
/// 64 MiB of others are read. --beside=OTHER_BUILD/libstretto_engine.so adds how much faster a
/// product is here than there; the other build must have the same cpu::Table.

#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/other_build.h"
#include "kernels/cpu/table.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/packed_weights.h"
#include "kernels/kernels.h"
#include "kernels/quantised/quantised.h"

namespace stretto::kernels {
namespace {

using at::Tensor;

struct Settings : benchmarks::CommonSettings {
  int64_t threads = 1;
  std::string level, beside;
  bool cold = false;

  bool take(std::string_view argument) {
    if (argument == "--cold") return cold = true;
    if (const auto name = benchmarks::value_of(argument, "--level")) {
      level = *name;
      return true;
    }
    if (const auto path = benchmarks::value_of(argument, "--beside")) {
      beside = *path;
      return true;
    }
    return benchmarks::take_number(argument, "--threads", threads) ||
           CommonSettings::take(argument);
  }
};

/// A product, and what of weights it reads.
struct Form {
  std::string name;
  std::function<Tensor()> run;
  double bytes = 0;
  std::vector<double> seconds = {}, there = {};  ///< of each round, here and in another build
};

/// Median of how much faster `ours` was, round by round.
double gain_on(const std::vector<double>& others, const std::vector<double>& ours) {
  std::vector<double> gains;
  for (size_t i = 0; i < ours.size(); ++i) gains.push_back(others[i] / ours[i]);
  return benchmarks::median(gains);
}

QuantisedWeights rounded_weights(const Tensor& weight, int bits, int64_t group) {
  const int64_t size = group == 0 ? weight.size(1) : group;
  const Tensor groups = weight.view({weight.size(0), weight.size(1) / size, size});
  const double highest = static_cast<double>((1 << (bits - 1)) - 1);
  const Tensor scales = groups.abs().amax(2) / highest;
  const Tensor codes = (groups / scales.unsqueeze(2)).round().clamp(-highest, highest);
  return {.bits = bits,
          .group = group,
          .codes = codes.view(weight.sizes()).to(at::kChar),
          .scales = scales};
}

/// Reads more than any cache holds.
void read_others(const Settings& settings) {
  static const Tensor others = at::ones({int64_t{16} << 20}, at::kFloat);
  if (settings.cold) static_cast<void>(others.sum().item<float>());
}

std::vector<Form> forms_of(const Tensor& x, const Tensor& weight, PackedWeights& packed) {
  std::vector<Form> forms;
  forms.push_back({"fp32",
                   [&x, &weight, &packed] {
                     const PackedWeightsScope scope(packed);
                     return kernels::linear(x, weight);
                   },
                   4.0 * static_cast<double>(weight.numel())});
  forms.push_back({"bf16",
                   [&x, &weight, &packed] {
                     const PackedWeightsScope scope(packed);
                     const ComputeScope arithmetic(Compute::kBf16);
                     return kernels::linear(x, weight);
                   },
                   2.0 * static_cast<double>(weight.numel())});
  for (const auto& [bits, group] :
       std::vector<std::pair<int, int64_t>>{{8, 0}, {8, 128}, {6, 32}, {4, 0}, {4, 32}, {4, 16}}) {
    const auto matrix =
        std::make_shared<const QuantisedMatrix>(rounded_weights(weight, bits, group));
    const std::string name =
        std::to_string(bits) + " bits" + (group == 0 ? "" : ", groups of " + std::to_string(group));
    forms.push_back({name, [&x, matrix] { return quantised_linear(x, *matrix); },
                     static_cast<double>(matrix->bytes())});
  }
  return forms;
}

/// Seconds of one product, of `times` in a row.
double seconds_each(const Form& form, const Settings& settings, int64_t times) {
  read_others(settings);
  const double seconds = benchmarks::seconds_of(settings.device(), [&] {
    for (int64_t i = 0; i < times; ++i) form.run();
  });
  return seconds / static_cast<double>(times);
}

void measure(const Settings& settings, const cpu::Table* other, int64_t rows, int64_t inputs,
             int64_t outputs) {
  const Tensor x = at::randn({rows, inputs}), weight = at::randn({outputs, inputs}) * 0.05;
  PackedWeights packed;
  std::vector<Form> forms = forms_of(x, weight, packed);
  const double products = 2.0 * static_cast<double>(rows * inputs * outputs);
  // About 5 ms a round, so that the clock's own time does not count; one product at a time if cold.
  const auto times = settings.cold
                         ? int64_t{1}
                         : std::max<int64_t>(1, static_cast<int64_t>(5e-3 * 5e10 / products));
  const cpu::Table& own = cpu::table();
  for (int64_t round = 0; round <= settings.rounds; ++round)
    for (Form& form : forms)
      for (const int64_t turn : {round, round + 1}) {  // the second finds the weights in the cache
        const bool is_here = turn % 2 == 0;
        if (!is_here && other == nullptr) continue;
        const cpu::LevelGuard guard(is_here ? own : *other);
        const double seconds = seconds_each(form, settings, times);
        if (round > 0) (is_here ? form.seconds : form.there).push_back(seconds);
      }
  std::printf("%lld rows, %lld inputs, %lld outputs\n", static_cast<long long>(rows),
              static_cast<long long>(inputs), static_cast<long long>(outputs));
  for (const Form& form : forms) {
    const double seconds = benchmarks::median(form.seconds);
    std::printf("  %-22s %10.1f us  %5.2fx  %7.1f GOP/s  %6.1f GB/s", form.name.c_str(),
                seconds * 1e6, gain_on(forms.front().seconds, form.seconds),
                products / seconds * 1e-9, form.bytes / seconds * 1e-9);
    if (other != nullptr)
      std::printf("  %5.2fx the other build", gain_on(form.there, form.seconds));
    std::printf("\n");
  }
  std::fflush(stdout);
}

const cpu::Table* level_named(const std::string& name) {
  for (const cpu::Table* level : cpu::levels())
    if (name.empty() || name == level->name) return level;
  std::fprintf(stderr, "error: this processor has no level %s\n", name.c_str());
  std::exit(2);
}

}  // namespace
}  // namespace stretto::kernels

int main(int argc, char** argv) {
  using namespace stretto::kernels;
  const auto settings = stretto::benchmarks::read_settings<Settings>(
      argc, argv,
      "quantised_bench [--threads=N] [--rounds=N] [--level=NAME] [--cold] [--beside=LIBRARY]");
  at::set_num_threads(static_cast<int>(settings.threads));
  const c10::InferenceMode inference;
  const cpu::LevelGuard level(*level_named(settings.level));
  const cpu::Table* const other =
      settings.beside.empty() ? nullptr : &stretto::benchmarks::table_of(settings.beside);
  std::printf("level %s, %d threads; 8 bits %s, 4 bits %s here\n", cpu::table().name,
              at::get_num_threads(), quantised_is_faster(8, 0) ? "for speed" : "for size",
              quantised_is_faster(4, 32) ? "for speed" : "for size");
  for (const int64_t rows : {1, 5, 32, 160, 1024}) {
    measure(settings, other, rows, 512, 512);
    measure(settings, other, rows, 512, 2048);
    measure(settings, other, rows, 2048, 512);
    measure(settings, other, rows, 1024, 4096);
  }
  measure(settings, other, 160, 512, 32000);
  return 0;
}
