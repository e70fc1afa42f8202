/// Matrix products of training beside libtorch's, and beside those of another build: every product
/// is computed by each in turn, so that whatever else the machine does meets all alike.
///
///     cmake --preset release -DSTRETTO_BENCHMARKS=ON
///     cmake --build build/release --target products_bench
///     build/release/products_bench --threads=1
///     build/release/products_bench --beside=OTHER_BUILD/libstretto_engine.so
///
/// Options: --threads=T (default: 1), --rounds=R of each product (default: 60). Printed are the
/// GFLOP/s of a thread, medians over rounds, and the median of the ratios of single rounds: how
/// much faster we are. All lay out their operands anew for each product, as training does. On AMD,
/// libtorch wants a library preloaded that opens MKL's fast path. The other build must have the
/// same cpu::Table.

#include <torch/torch.h>

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/other_build.h"
#include "kernels/cpu/table.h"
#include "kernels/gemm/gemm.h"

namespace stretto::kernels {
namespace {

using benchmarks::median, benchmarks::seconds_of, benchmarks::take_number, benchmarks::value_of;

struct Settings {
  int64_t threads = 1, rounds = 60;
  std::string beside;
  bool cuda = false;

  bool take(std::string_view argument) {
    if (const auto path = value_of(argument, "--beside")) {
      beside = *path;
      return true;
    }
    return take_number(argument, "--threads", threads) || take_number(argument, "--rounds", rounds);
  }
};

/// [rows, depth] times [depth, columns]; a gradient of weights has the transpose of its rows, and
/// adds.
struct Shape {
  const char* name;
  int64_t rows, depth, columns;
  bool of_weights = false;
};
constexpr Shape kShapes[] = {
    {"10,000 words, logits", 512, 200, 10000},
    {"10,000 words, slopes of rows", 512, 10000, 200},
    {"10,000 words, slopes of weights", 10000, 512, 200, true},
    {"LSTM of 200, inputs", 700, 200, 800},
    {"LSTM of 200, slopes of inputs", 700, 800, 200},
    {"LSTM of 200, slopes of weights", 800, 700, 200, true},
    {"width 128, in", 768, 128, 512},
    {"width 128, out", 768, 512, 128},
    {"width 128, slopes of weights", 512, 768, 128, true},
    {"width 256, in", 1000, 256, 1024},
    {"width 256, out", 1000, 1024, 256},
    {"width 256, slopes of weights", 1024, 1000, 256, true},
    {"width 512, in", 2048, 512, 2048},
    {"width 512, out", 2048, 2048, 512},
    {"width 512, slopes of weights", 2048, 4096, 512, true},
    {"width 768, square", 512, 768, 768},
};

void measure(const Shape& shape, const Settings& settings, const cpu::Table* other) {
  const at::Tensor left = shape.of_weights ? at::randn({shape.depth, shape.rows})
                                           : at::randn({shape.rows, shape.depth});
  const at::Tensor right = at::randn({shape.depth, shape.columns});
  at::Tensor out = at::zeros({shape.rows, shape.columns});
  const gemm::Operand a{left, shape.of_weights};
  const auto ours = [&] { gemm::multiply(a, gemm::Packed({right}), {}, shape.of_weights, out); };
  std::vector<std::function<void()>> products = {
      ours, [&] { gemm::multiply_by_libtorch(a, {right}, shape.of_weights, Compute::kFp32, out); }};
  if (other != nullptr)
    products.emplace_back([&] {
      const cpu::LevelGuard guard(*other);
      ours();
    });
  std::vector<std::vector<double>> seconds(products.size()), ratios(products.size());
  for (int64_t round = -1; round < settings.rounds; ++round) {  // the first one warms up
    std::vector<double> once(products.size());
    for (size_t i = 0; i < products.size(); ++i) {
      const size_t which = (i + static_cast<size_t>(round + 1)) % products.size();
      once[which] = seconds_of(at::kCPU, products[which]);
    }
    if (round < 0) continue;
    for (size_t i = 0; i < products.size(); ++i) {
      seconds[i].push_back(once[i]);
      ratios[i].push_back(once[i] / once[0]);
    }
  }
  const double work = 2e-9 * static_cast<double>(shape.rows * shape.depth * shape.columns) /
                      static_cast<double>(settings.threads);
  std::printf("| %s | %lld x %lld x %lld | %.1f |", shape.name, static_cast<long long>(shape.rows),
              static_cast<long long>(shape.depth), static_cast<long long>(shape.columns),
              work / median(seconds[0]));
  for (size_t i = 1; i < products.size(); ++i)
    std::printf(" %.1f | %.2f |", work / median(seconds[i]), median(ratios[i]));
  std::printf("\n");
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  const auto settings =
      benchmarks::read_settings<Settings>(argc, argv, "--threads=T --rounds=R --beside=LIBRARY");
  at::set_num_threads(static_cast<int>(settings.threads));
  const at::InferenceMode no_gradients;
  const gemm::OwnProducts always;
  const cpu::Table* const other =
      settings.beside.empty() ? nullptr : &benchmarks::table_of(settings.beside);
  std::printf("%s, %lld threads\n\n", cpu::table().name, static_cast<long long>(settings.threads));
  std::printf(
      "| product | rows x depth x columns | Stretto | libtorch | Stretto is faster by |%s\n",
      other == nullptr ? "" : " the other build | faster by |");
  std::printf("|---|---|---|---|---|%s\n", other == nullptr ? "" : "---|---|");
  for (const Shape& shape : kShapes) measure(shape, settings, other);
  return 0;
}

}  // namespace
}  // namespace stretto::kernels

int main(int argc, char** argv) {
  return stretto::kernels::run(argc, argv);
}
