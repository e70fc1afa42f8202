/// The section of kernels_bench with convolutions in time: forward and backward on packed batches,
/// beside libtorch's conv1d on the same batches padded, and beside our own kernel on batches whose
/// sequences are all equally long.
///
///     build/release/kernels_bench --threads=2 --benchmark_filter=convolution
///
/// Batches are those of a small translation corpus: 29,000 pairs with lengths as Multi30k has them
/// (mean 14, standard deviation 4, of both sides together 0.86 alike), sorted by source and then
/// target, cut where sentences times the longest reach the limit; of these every n-th, sources with
/// a centred window and targets with a causal one. convolutions_beside_torch.py makes the same.
///
/// The three take turns in each iteration. Columns: microseconds for each real token of ours
/// (us_token), libtorch's time over ours (libtorch_x) and ours over that of equal lengths, for each
/// real token (dense_x); the last two are medians of the iterations' ratios.

#include <ATen/CPUGeneratorImpl.h>
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "benchmarks/bench.h"
#include "benchmarks/kernels_bench.h"
#include "kernels/convolution/convolution.h"

namespace stretto::kernels {
namespace {

using at::Tensor;
using Lengths = std::vector<int64_t>;
using SentencePair = std::pair<int64_t, int64_t>;

constexpr int64_t kPairs = 29'000, kBatchesOfASide = 3;

// --- batches -----------------------------------------------------------------------------------

/// A number that is nearly normal: twelve uniform ones of stream `stream`, less their mean.
double normal_number(uint64_t stream, uint64_t index) {
  double sum = -6;
  for (uint64_t i = 0; i < 12; ++i)
    sum += static_cast<double>(mix64(mix64(stream, index), i) >> 11) * 0x1.0p-53;
  return sum;
}

/// Logarithms of lengths have the means, deviations and correlation of Multi30k's.
SentencePair pair_of(uint64_t index) {
  constexpr double kAlike = 0.86;
  const double a = normal_number(1, index), b = normal_number(2, index);
  const auto length = [](double mean, double deviation, double x) {
    return std::clamp<int64_t>(std::llround(std::exp(mean + deviation * x)), 3, 46);
  };
  return {length(2.61, 0.28, a),
          length(2.57, 0.30, kAlike * a + std::sqrt(1 - kAlike * kAlike) * b)};
}

std::vector<std::vector<SentencePair>> bucketed_pairs(int64_t most_tokens) {
  std::vector<SentencePair> pairs;
  for (uint64_t i = 0; i < kPairs; ++i) pairs.push_back(pair_of(i));
  std::sort(pairs.begin(), pairs.end());
  std::vector<std::vector<SentencePair>> batches(1);
  int64_t longest = 0;
  for (const SentencePair& pair : pairs) {
    const int64_t own = std::max(pair.first, pair.second);
    longest = std::max(longest, own);
    if ((static_cast<int64_t>(batches.back().size()) + 1) * longest > most_tokens) {
      batches.emplace_back();
      longest = own;
    }
    batches.back().push_back(pair);
  }
  return batches;
}

struct Side {
  Lengths lengths;
  Border border;

  int64_t longest() const { return *std::max_element(lengths.begin(), lengths.end()); }
  int64_t tokens() const {
    int64_t sum = 0;
    for (const int64_t length : lengths) sum += length;
    return sum;
  }
  /// As many sequences, about as many tokens, all of one length.
  Side dense() const {
    const auto count = static_cast<int64_t>(lengths.size());
    return {Lengths(lengths.size(), (tokens() + count / 2) / count), border};
  }
};

std::vector<Side> some_sides(int64_t most_tokens) {
  const auto batches = bucketed_pairs(most_tokens);
  std::vector<Side> sides;
  for (int64_t i = 0; i < kBatchesOfASide; ++i) {
    const auto place = batches.size() * static_cast<size_t>(2 * i + 1) / (2 * kBatchesOfASide);
    Side source{{}, Border::kCentred}, target{{}, Border::kCausal};
    for (const auto& [a, b] : batches[place]) {
      source.lengths.push_back(a);
      target.lengths.push_back(b);
    }
    sides.push_back(source);
    sides.push_back(target);
  }
  return sides;
}

// --- what is measured --------------------------------------------------------------------------

Tensor some_numbers(at::IntArrayRef sizes, uint64_t seed, double scale = 1) {
  return at::randn(sizes, at::make_generator<at::CPUGeneratorImpl>(seed), at::kFloat) * scale;
}

Tensor a_leaf(const Tensor& values) {
  return values.detach().clone().requires_grad_();
}

/// One layer, ours on rows and libtorch's on [B, C, T] with `padding` zeroes at both ends.
struct Layer {
  int64_t channels, kernel;
  std::vector<Tensor> parameters;
  std::function<Tensor(const Tensor& x, const std::vector<Tensor>&, const TimeWindow&)> ours;
  std::function<Tensor(const Tensor& x, const std::vector<Tensor>&, int64_t padding)> libtorch;
};

/// Forward and backward of one batch.
using Pass = std::function<void()>;

Pass pass_of(const std::function<Tensor()>& forward, const std::vector<Tensor>& leaves) {
  const Tensor slope = some_numbers(forward().sizes(), 99);
  return [=] { benchmark::DoNotOptimize(torch::autograd::grad({forward()}, leaves, {slope})); };
}

std::vector<Tensor> with(const Tensor& x, std::vector<Tensor> parameters) {
  parameters.insert(parameters.begin(), x);
  return parameters;
}

Pass packed_pass(const Layer& layer, const Side& side) {
  std::vector<int64_t> ends{0};
  for (const int64_t length : side.lengths) ends.push_back(ends.back() + length);
  const TimeWindow window{
      .offsets = {.values = at::tensor(ends).to(at::kInt), .max_length = side.longest()},
      .kernel = layer.kernel,
      .border = side.border};
  const Tensor x = a_leaf(some_numbers({side.tokens(), layer.channels}, 1));
  return pass_of([=] { return layer.ours(x, layer.parameters, window); },
                 with(x, layer.parameters));
}

/// conv1d pads both ends alike: for a causal layer zeroes are put in front first.
Pass padded_pass(const Layer& layer, const Side& side) {
  const auto count = static_cast<int64_t>(side.lengths.size());
  const int64_t time = side.longest();
  const Tensor x = a_leaf(some_numbers({count, layer.channels, time}, 1));
  const int64_t reach = layer.kernel - 1;
  const bool causal = side.border == Border::kCausal;
  return pass_of(
      [=] {
        return causal ? layer.libtorch(at::constant_pad_nd(x, {reach, 0}), layer.parameters, 0)
                      : layer.libtorch(x, layer.parameters, reach / 2);
      },
      with(x, layer.parameters));
}

double seconds_of_all(const std::vector<Pass>& passes) {
  double sum = 0;
  for (const Pass& pass : passes) sum += benchmarks::seconds_of(at::kCPU, pass);
  return sum;
}

void take_turns(benchmark::State& state, const Layer& layer, int64_t most_tokens) {
  const std::vector<Side> sides = some_sides(most_tokens);
  std::vector<Pass> packed, padded, dense;
  int64_t tokens = 0, dense_tokens = 0;
  for (const Side& side : sides) {
    packed.push_back(packed_pass(layer, side));
    padded.push_back(padded_pass(layer, side));
    dense.push_back(packed_pass(layer, side.dense()));
    tokens += side.tokens();
    dense_tokens += side.dense().tokens();
  }
  for (const auto* passes : {&packed, &padded, &dense}) seconds_of_all(*passes);  // warms up
  std::vector<double> beside_libtorch, beside_dense, seconds;
  for (auto _ : state) {
    const double ours = seconds_of_all(packed), libtorch = seconds_of_all(padded);
    const double equal = seconds_of_all(dense);
    seconds.push_back(ours);
    beside_libtorch.push_back(libtorch / ours);
    beside_dense.push_back(ours / static_cast<double>(tokens) /
                           (equal / static_cast<double>(dense_tokens)));
    state.SetIterationTime(ours);
  }
  state.SetItemsProcessed(state.iterations() * tokens);
  state.counters["us_token"] = benchmarks::median(seconds) / static_cast<double>(tokens) * 1e6;
  state.counters["libtorch_x"] = benchmarks::median(beside_libtorch);
  state.counters["dense_x"] = benchmarks::median(beside_dense);
}

// --- layers ------------------------------------------------------------------------------------

Layer conv_layer(int64_t inputs, int64_t outputs, int64_t kernel) {
  const double scale = 1 / std::sqrt(static_cast<double>(inputs * kernel));
  const auto ours = [](const Tensor& x, const auto& p, const TimeWindow& window) {
    return time_convolution(x, p[0], p[1], window);
  };
  // libtorch's weight is the same numbers in its own order, a view that costs it nothing.
  const auto libtorch = [=](const Tensor& x, const auto& p, int64_t padding) {
    return at::conv1d(x, p[0].view({outputs, inputs, kernel}), p[1], 1, at::IntArrayRef(padding));
  };
  return {inputs,
          kernel,
          {a_leaf(some_numbers({outputs, kernel * inputs}, 2, scale)),
           a_leaf(some_numbers({outputs}, 3))},
          ours,
          libtorch};
}

Layer depthwise_layer(int64_t channels, int64_t kernel) {
  const auto ours = [](const Tensor& x, const auto& p, const TimeWindow& window) {
    return depthwise_convolution(x, p[0], p[1], window);
  };
  const auto libtorch = [=](const Tensor& x, const auto& p, int64_t padding) {
    return at::conv1d(x, p[0].unsqueeze(1), p[1], 1, at::IntArrayRef(padding), 1, channels);
  };
  return {channels,
          kernel,
          {a_leaf(some_numbers({channels, kernel}, 2)), a_leaf(some_numbers({channels}, 3))},
          ours,
          libtorch};
}

/// libtorch's form merges the channels of a head into the batch.
Layer light_layer(int64_t channels, int64_t heads, int64_t kernel) {
  const auto ours = [](const Tensor& x, const auto& p, const TimeWindow& window) {
    return light_convolution(x, p[0], {}, window);
  };
  const auto libtorch = [=](const Tensor& x, const auto& p, int64_t padding) {
    const Tensor filters = at::softmax(p[0], 1).repeat_interleave(channels / heads, 0);
    return at::conv1d(x, filters.unsqueeze(1), {}, 1, at::IntArrayRef(padding), 1, channels);
  };
  return {channels, kernel, {a_leaf(some_numbers({heads, kernel}, 2))}, ours, libtorch};
}

void add_layer(const std::string& name, int64_t most_tokens, const std::function<Layer()>& make) {
  benchmark::RegisterBenchmark(
      (name + "/" + std::to_string(most_tokens)).c_str(),
      [=](benchmark::State& state) { take_turns(state, make(), most_tokens); })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace

void add_convolutions() {
  for (const int64_t most_tokens : {1024, 2048})
    for (const int64_t channels : {256, 512}) {
      const std::string width = "/" + std::to_string(channels) + "_k";
      for (const int64_t kernel : {3, 5, 7})
        add_layer("time_convolution" + width + std::to_string(kernel), most_tokens,
                  [=] { return conv_layer(channels, channels, kernel); });
      add_layer("depthwise_convolution" + width + "7", most_tokens,
                [=] { return depthwise_layer(channels, 7); });
      add_layer("light_convolution" + width + "7", most_tokens,
                [=] { return light_layer(channels, 8, 7); });
    }
}

}  // namespace stretto::kernels
