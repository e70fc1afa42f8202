/// Recurrent layers on packed rows: time for a real token at every length, and where it goes.
///
///     cmake --preset release -DSTRETTO_BENCHMARKS=ON
///     cmake --build build/release --target recurrent_bench
///     build/release/recurrent_bench --threads=2 --hidden=512 --batch=64
///
/// prints for each cell and batch microseconds for 1000 real tokens, forward and backward with the
/// input's product and all gradients, of a batch of unequal lengths beside a dense batch of as many
/// tokens, and of decoding steps. --bundles=N forces N groups of rows (schedule.h), 0 is the rule.
/// --sweep prints instead, for several numbers of rows, microseconds of a step with threads that
/// work together and with threads that work apart: what the rule was made from.
/// --serve answers recurrent_beside_torch.py: a job as a line of JSON on stdin, seconds on stdout.

#include <malloc.h>
#include <torch/torch.h>

#include <cstdio>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/bench.h"
#include "kernels/recurrent/attentive.h"
#include "kernels/recurrent/recurrent.h"
#include "kernels/recurrent/schedule.h"
#include "kernels/recurrent/step.h"

namespace stretto::kernels {
namespace {

using at::Tensor;

struct Settings : benchmarks::CommonSettings {
  int64_t threads = 2, hidden = 512, batch = 64, bundles = 0, mean = 30;
  bool serve = false, sweep = false;

  bool take(std::string_view argument) {
    if (argument == "--serve") return serve = true;
    if (argument == "--sweep") return sweep = true;
    if (const auto value = benchmarks::value_of(argument, "--bundles"); value == "0") return true;
    return benchmarks::take_number(argument, "--threads", threads) ||
           benchmarks::take_number(argument, "--hidden", hidden) ||
           benchmarks::take_number(argument, "--batch", batch) ||
           benchmarks::take_number(argument, "--mean", mean) ||
           benchmarks::take_number(argument, "--bundles", bundles) ||
           CommonSettings::take(argument);
  }
};

/// One layer with as many inputs as units.
struct Layer {
  Layer(Cell kind, int64_t size) : cell(kind), hidden(size) {
    const int64_t gates = gates_of(kind) * size;
    const double scale = 1 / std::sqrt(static_cast<double>(size));
    const auto uniform = [&](at::IntArrayRef shape) {
      return ((at::rand(shape) * 2 - 1) * scale).requires_grad_(true);
    };
    input = uniform({gates, size});
    input_bias = uniform({gates});
    weights.hidden = uniform({gates, size});
    if (kind == Cell::kGru) weights.hidden_bias = uniform({gates});
    if (kind != Cell::kNormLstm) return;
    weights.product_gain = at::ones({gates}).requires_grad_(true);
    weights.product_bias = at::zeros({gates}).requires_grad_(true);
    weights.cell_gain = at::ones({size}).requires_grad_(true);
    weights.cell_bias = at::zeros({size}).requires_grad_(true);
  }

  std::vector<Tensor> parameters() const {
    std::vector<Tensor> all;
    for (const Tensor& x :
         {input, input_bias, weights.hidden, weights.hidden_bias, weights.product_gain,
          weights.product_bias, weights.cell_gain, weights.cell_bias})
      if (x.defined()) all.push_back(x);
    return all;
  }

  Cell cell;
  int64_t hidden;
  Tensor input, input_bias;
  RecurrentWeights weights;
};

struct Times {
  double both, forward, first;  ///< medians, and both of the first call with these lengths
};

/// Median times of `forward` and of the gradients of all `leaves`.
Times time_of(const std::function<Tensor()>& run, const std::vector<Tensor>& leaves,
              int64_t repeats) {
  std::vector<double> both, forward;
  Tensor slope;
  for (int64_t i = 0; i < repeats; ++i) {
    Tensor out;
    const double first = benchmarks::seconds_of(at::kCPU, [&] { out = run(); });
    if (!slope.defined()) slope = at::randn(out.sizes());
    const double second =
        benchmarks::seconds_of(at::kCPU, [&] { torch::autograd::grad({out}, leaves, {slope}); });
    forward.push_back(first);
    both.push_back(first + second);
  }
  return {benchmarks::median(both), benchmarks::median(forward), both.front()};
}

Times time_of(const Layer& layer, const std::vector<int64_t>& lengths, int64_t repeats) {
  const Recurrent options{.cell = {.cell = layer.cell},
                          .offsets = benchmarks::offsets_of(lengths),
                          .overwrites_gates = true};
  const int64_t rows = options.offsets.values[-1].item<int64_t>();
  const Tensor x = at::randn({rows, layer.hidden}).requires_grad_(true);
  std::vector<Tensor> leaves = layer.parameters();
  leaves.push_back(x);
  const auto run = [&] {
    return recurrent(kernels::linear(x, layer.input, layer.input_bias), layer.weights, {}, options)
        .h;
  };
  return time_of(run, leaves, repeats);
}

/// GNMT's lowest decoder layer: normed additive attention to a memory as long as the target, all
/// widths alike, the memory's projections included.
Times time_of_attentive(const Layer& layer, const std::vector<int64_t>& lengths, int64_t repeats) {
  const int64_t size = layer.hidden;
  const auto leaf = [&](at::IntArrayRef shape) {
    return (at::randn(shape) / std::sqrt(static_cast<double>(size))).requires_grad_(true);
  };
  Attentive options{.score = Score::kNormedAdditive};
  options.recurrent = {.cell = {.cell = layer.cell},
                       .offsets = benchmarks::offsets_of(lengths),
                       .overwrites_gates = true};
  const int64_t rows = options.recurrent.offsets.values[-1].item<int64_t>();
  AttentiveWeights weights{.recurrent = layer.weights,
                           .context = leaf({layer.input.size(0), size}),
                           .query = leaf({size, size}),
                           .query_bias = leaf({size}),
                           .score = leaf({size}),
                           .gain = at::ones({1}).requires_grad_(true)};
  const Tensor x = at::randn({rows, size}).requires_grad_(true), keys = leaf({size, size});
  const Tensor encoded = at::randn({rows, size}).requires_grad_(true);
  std::vector<Tensor> leaves = layer.parameters();
  for (const Tensor& each : {x, encoded, keys, weights.context, weights.query, weights.query_bias,
                             weights.score, weights.gain})
    leaves.push_back(each);
  const auto run = [&] {
    const AttentiveOutput out = attentive(
        kernels::linear(x, layer.input, layer.input_bias), weights,
        {kernels::linear(encoded, keys), encoded, options.recurrent.offsets}, {}, options);
    return at::cat({out.h, out.context}, 1);
  };
  return time_of(run, leaves, repeats);
}

Cell cell_named(const std::string& name) {
  if (name == "gru") return Cell::kGru;
  return name == "norm_lstm" ? Cell::kNormLstm : Cell::kLstm;
}

void serve() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto job = nlohmann::json::parse(line);
    const Layer layer(cell_named(job["cell"]), job["hidden"]);
    auto answer = nlohmann::json::array();
    for (const auto& lengths : job["batches"]) {
      const Times times = time_of(layer, lengths, job["repeats"]);
      answer.push_back({times.both, times.forward, times.first});
    }
    std::cout << answer.dump() << std::endl;
  }
}

/// Lengths around `mean`, from a third of it to more than three times as much.
std::vector<int64_t> unequal(int64_t count, int64_t mean, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> draw(std::log(static_cast<double>(mean)) - 0.125, 0.5);
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < count; ++i)
    lengths.push_back(std::clamp<int64_t>(std::llround(draw(random)), (mean + 2) / 3, 4 * mean));
  return lengths;
}

double total(const std::vector<int64_t>& lengths) {
  double sum = 0;
  for (const int64_t length : lengths) sum += static_cast<double>(length);
  return sum;
}

void compare(const Settings& settings, const char* name, Cell cell, bool attends) {
  const Layer layer(cell, settings.hidden);
  const auto time =
      attends ? time_of_attentive
              : static_cast<Times (*)(const Layer&, const std::vector<int64_t>&, int64_t)>(time_of);
  const std::vector<int64_t> lengths = unequal(settings.batch, settings.mean, 1);
  const double tokens = total(lengths), count = static_cast<double>(settings.batch);
  const std::vector<int64_t> equal(lengths.size(), std::llround(tokens / count));
  std::vector<double> ratio, spread, dense, forward;
  for (int64_t round = 0; round < settings.rounds; ++round) {
    const Times one = time(layer, equal, 3), other = time(layer, lengths, 3);
    dense.push_back(one.both / total(equal) * 1e9);
    spread.push_back(other.both / tokens * 1e9);
    forward.push_back(other.forward / tokens * 1e9);
    ratio.push_back(spread.back() / dense.back());
  }
  std::printf("%-10s %6.0f tokens  dense %8.0f  unequal %8.0f  forward %8.0f  ratio %.3f\n", name,
              tokens, benchmarks::median(dense), benchmarks::median(spread),
              benchmarks::median(forward), benchmarks::median(ratio));
}

void step(const Settings& settings, const char* name, Cell cell) {
  const Layer layer(cell, settings.hidden);
  const RecurrentStep next(layer.weights, {.cell = cell});
  for (const int64_t lanes : {1, 4, 16, 64}) {
    const Tensor gates = at::randn({lanes, gates_of(cell) * settings.hidden});
    RecurrentState state = next(gates, {});
    std::vector<double> seconds;
    for (int64_t i = 0; i < 100; ++i)
      seconds.push_back(benchmarks::seconds_of(at::kCPU, [&] { state = next(gates, state); }));
    std::printf("%-10s step of %2ld lanes: %8.1f us\n", name, static_cast<long>(lanes),
                benchmarks::median(seconds) * 1e6);
  }
}

/// Steps of `rows` sequences of one length, without the input's product.
void sweep(const Settings& settings, const char* name, Cell cell) {
  constexpr int64_t kSteps = 40;
  const Layer layer(cell, settings.hidden);
  std::printf("%-10s rows: together, apart (us a step, forward and backward)\n", name);
  for (const int64_t rows : {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}) {
    const Tensor x =
        at::randn({rows * kSteps, gates_of(cell) * settings.hidden}).requires_grad_(true);
    const Tensor slope = at::randn({rows * kSteps, settings.hidden});
    const Recurrent options{
        .cell = {.cell = cell},
        .offsets = benchmarks::offsets_of(std::vector<int64_t>(static_cast<size_t>(rows), kSteps))};
    std::vector<double> seconds[2];
    for (int64_t round = 0; round < settings.rounds; ++round)
      for (const int64_t apart : {0, 1}) {
        force_bundles(apart == 1 ? settings.threads : 1);
        // Slopes of x alone: steps without the weight's product.
        seconds[apart].push_back(benchmarks::seconds_of(at::kCPU, [&] {
          RecurrentWeights weights = layer.weights;
          for (Tensor* w : {&weights.hidden, &weights.hidden_bias, &weights.product_gain,
                            &weights.product_bias, &weights.cell_gain, &weights.cell_bias})
            if (w->defined()) *w = w->detach();
          torch::autograd::grad({recurrent(x, weights, {}, options).h}, {x}, {slope});
        }));
      }
    std::printf("  %4ld: %8.1f %8.1f\n", static_cast<long>(rows),
                benchmarks::median(seconds[0]) / kSteps * 1e6,
                benchmarks::median(seconds[1]) / kSteps * 1e6);
  }
}

}  // namespace
}  // namespace stretto::kernels

int main(int argc, char** argv) {
  using namespace stretto;
  const auto settings = benchmarks::read_settings<kernels::Settings>(
      argc, argv,
      "recurrent_bench [--threads=N] [--hidden=N] [--batch=N] [--mean=N] [--rounds=N] "
      "[--bundles=N] [--sweep] [--serve]");
  // As the program sets it: blocks of some size are kept.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  at::set_num_threads(static_cast<int>(settings.threads));
  torch::manual_seed(1);
  kernels::force_bundles(settings.bundles);
  if (settings.serve) {
    kernels::serve();
    return 0;
  }
  if (settings.sweep) {
    kernels::sweep(settings, "lstm", kernels::Cell::kLstm);
    return 0;
  }
  std::printf("%ld units, %ld sequences, %ld threads; microseconds for 1000 tokens\n",
              static_cast<long>(settings.hidden), static_cast<long>(settings.batch),
              static_cast<long>(settings.threads));
  for (const auto& [name, cell] :
       {std::pair{"lstm", kernels::Cell::kLstm}, std::pair{"gru", kernels::Cell::kGru},
        std::pair{"norm_lstm", kernels::Cell::kNormLstm}})
    kernels::compare(settings, name, cell, false);
  kernels::compare(settings, "attentive", kernels::Cell::kLstm, true);
  for (const auto& [name, cell] :
       {std::pair{"lstm", kernels::Cell::kLstm}, std::pair{"gru", kernels::Cell::kGru}})
    kernels::step(settings, name, cell);
}
