/// Gradients of the filters of convolutions of planes, our own loops in turn with libtorch's
/// (oneDNN's), for the layers of ResNet-20 at 32 x 32 and of ResNet-18 at 224 x 224.
///
///     cmake --preset release -DSTRETTO_BENCHMARKS=ON
///     cmake --build build/release --target filter_slopes_bench
///     build/release/filter_slopes_bench --threads=2
///
/// Options: --threads=T (default: 1), --rounds=R (default: 15). Printed are GFLOP/s of all threads,
/// medians over rounds, and the median of the ratios of single rounds. Freed memory is kept, as in
/// training: set MALLOC_MMAP_THRESHOLD_ and MALLOC_TRIM_THRESHOLD_ to 1073741824.

#include <torch/torch.h>

#include <cstdio>
#include <string_view>
#include <vector>

#include "benchmarks/bench.h"
#include "kernels/convolution/windows.h"
#include "kernels/cpu/table.h"

namespace stretto::kernels {
namespace {

using benchmarks::median, benchmarks::seconds_of, benchmarks::take_number;

struct Settings {
  int64_t threads = 1, rounds = 15;
  bool cuda = false;

  bool take(std::string_view argument) {
    return take_number(argument, "--threads", threads) || take_number(argument, "--rounds", rounds);
  }
};

struct Layer {
  int64_t count, side, channels, filters, taps, stride;
};
constexpr Layer kLayers[] = {
    {128, 32, 16, 16, 3, 1},  {128, 32, 16, 32, 3, 2},  {128, 16, 32, 32, 3, 1},
    {128, 16, 32, 64, 3, 2},  {128, 8, 64, 64, 3, 1},   {32, 224, 3, 64, 7, 2},
    {16, 56, 64, 64, 3, 1},   {16, 56, 64, 128, 3, 2},  {16, 28, 128, 128, 3, 1},
    {16, 28, 128, 256, 3, 2}, {16, 14, 256, 256, 3, 1}, {16, 14, 256, 512, 3, 2},
    {16, 7, 512, 512, 3, 1},
};

void measure(const Layer& layer, const Settings& settings) {
  const auto planes = [](at::IntArrayRef sizes) {
    return at::randn(sizes).contiguous(at::MemoryFormat::ChannelsLast);
  };
  const PlaneWindow window{.stride = layer.stride, .padding = layer.taps / 2};
  const at::Tensor x = planes({layer.count, layer.channels, layer.side, layer.side});
  const at::Tensor weight = planes({layer.filters, layer.channels, layer.taps, layer.taps});
  const at::Tensor dy = planes(at::conv2d(x, weight, {}, layer.stride, layer.taps / 2).sizes());
  std::vector<double> ours, others, ratios;
  for (int64_t round = -1; round < settings.rounds; ++round) {  // the first one warms up
    const auto by_windows = [&] { windows::filter_slopes(x, dy, weight, window); };
    const auto by_libtorch = [&] {
      at::convolution_backward(dy, x, weight, at::OptionalIntArrayRef(), window.strides(),
                               window.paddings(), {1, 1}, /*transposed=*/false, {0, 0}, 1,
                               {false, true, false});
    };
    const bool first = round % 2 == 0;
    double own = first ? seconds_of(at::kCPU, by_windows) : 0;
    const double other = seconds_of(at::kCPU, by_libtorch);
    if (!first) own = seconds_of(at::kCPU, by_windows);
    if (round < 0) continue;
    ours.push_back(own);
    others.push_back(other);
    ratios.push_back(other / own);
  }
  const double work = 2e-9 * static_cast<double>(dy.numel() * weight.numel() / layer.filters);
  std::printf("| %lld | %lld x %lld | %lld | %lld | %lld | %lld | %.0f | %.0f | %.2f |\n",
              static_cast<long long>(layer.count), static_cast<long long>(layer.side),
              static_cast<long long>(layer.side), static_cast<long long>(layer.channels),
              static_cast<long long>(layer.filters), static_cast<long long>(layer.taps),
              static_cast<long long>(layer.stride), work / median(ours), work / median(others),
              median(ratios));
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  const auto settings = benchmarks::read_settings<Settings>(argc, argv, "--threads=T --rounds=R");
  at::set_num_threads(static_cast<int>(settings.threads));
  const at::NoGradGuard no_gradients;
  std::printf("%s, %lld threads\n\n", cpu::table().name, static_cast<long long>(settings.threads));
  std::printf(
      "| pictures | size | channels | filters | taps | stride | Stretto | libtorch | faster by |\n"
      "|---|---|---|---|---|---|---|---|---|\n");
  for (const Layer& layer : kLayers) measure(layer, settings);
  return 0;
}

}  // namespace
}  // namespace stretto::kernels

int main(int argc, char** argv) {
  return stretto::kernels::run(argc, argv);
}
