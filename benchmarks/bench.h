#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "kernels/offsets.h"

/// What programs that measure by themselves share: their command line, a clock and the median.
namespace stretto::benchmarks {

/// What stands behind "--name=", where the argument begins so.
inline std::optional<std::string_view> value_of(std::string_view argument, std::string_view name) {
  const size_t equals = argument.find('=');
  if (equals == std::string_view::npos || argument.substr(0, equals) != name) return std::nullopt;
  return argument.substr(equals + 1);
}

/// "--name=N" into `number`; false for another name, or when N is no whole number above 0.
inline bool take_number(std::string_view argument, std::string_view name, int64_t& number) {
  const auto value = value_of(argument, name);
  if (!value) return false;
  const auto [end, error] = std::from_chars(value->begin(), value->end(), number);
  return error == std::errc() && end == value->end() && number >= 1;
}

using kernels::offsets_of;

/// What every program is told.
struct CommonSettings {
  int64_t rounds = 7;
  bool cuda = false;

  at::Device device() const { return cuda ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU); }

  /// One argument into a setting; false if it is none of these.
  bool take(std::string_view argument) {
    if (argument == "--device=cuda") return cuda = true;
    return argument == "--device=cpu" || take_number(argument, "--rounds", rounds);
  }
};

/// The command line by `Settings::take`. What cannot be used ends the program with exit code 2;
/// `usage` is one line.
template <class Settings>
Settings read_settings(int argc, char** argv, const char* usage) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    if (settings.take(argv[i])) continue;
    std::fprintf(stderr, "error: cannot use %s\n  %s\n", argv[i], usage);
    std::exit(2);
  }
  if (settings.cuda && !torch::cuda::is_available()) {
    std::fputs(
        "error: --device=cuda, but this process sees no GPU\n  build with the CUDA preset, "
        "on a machine with one\n",
        stderr);
    std::exit(2);
  }
  return settings;
}

template <class Work>
double seconds_of(at::Device device, const Work& work) {
  // Work on a GPU is only handed over: what came before has to end before the clock starts.
  if (device.is_cuda()) torch::cuda::synchronize();
  const auto start = std::chrono::steady_clock::now();
  work();
  if (device.is_cuda()) torch::cuda::synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

}  // namespace stretto::benchmarks
