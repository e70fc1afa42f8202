#include "data/pairs/corpus_order.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/random_streams.h"

namespace stretto::data {
namespace {

constexpr uint64_t kOrderVersion = 1;
constexpr uint64_t kMaxSamples = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kMostWindows = 16;

/// Calls visit(pair) once for every sample, in the order of sample ids.
template <class Visit>
void for_each_sample(std::span<const uint64_t> input_ends, const SampleWeights& weights,
                     Visit visit) {
  const uint64_t stream = mix64(weights.seed, streams::kSampleWeights);
  uint64_t pair = 0;
  for (size_t input = 0; input < input_ends.size(); ++input) {
    const double weight = weights.weights.empty() ? 1.0 : weights.weights[input];
    const double whole = std::floor(weight);
    for (; pair < input_ends[input]; ++pair) {
      const double draw = static_cast<double>(mix64(stream, pair) >> 11) * 0x1.0p-53;
      const auto times = static_cast<uint64_t>(whole) + (draw < weight - whole ? 1 : 0);
      for (uint64_t i = 0; i < times; ++i) visit(pair);
    }
  }
}

/// A number for each pair of lengths that occurs: [target length][source length].
using ByLengths = std::vector<std::vector<uint64_t>>;

/// Sizes of an order that is being made.
struct Shape {
  uint64_t samples = 0, src_tokens = 0, tgt_tokens = 0;
  ByLengths begins;  ///< the first position of each run
};

/// Counts the samples, and writes the pair of each where that is not its own number.
Shape count_samples(const PairLengths& lengths, const SampleWeights& weights,
                    SampleStoreWriter& store) {
  Shape shape;
  const bool has_pairs = weights.key() != 0;
  for_each_sample(lengths.input_ends, weights, [&](uint64_t pair) {
    const uint32_t src = lengths.src(pair), tgt = lengths.tgt(pair);
    if (shape.begins.size() <= tgt) shape.begins.resize(size_t{tgt} + 1);
    auto& counts = shape.begins[tgt];
    if (counts.size() <= src) counts.resize(size_t{src} + 1);
    ++counts[src];
    shape.src_tokens += src;
    shape.tgt_tokens += tgt;
    if (has_pairs) store.append_value(kOrderPairs, static_cast<uint32_t>(pair));
    if (++shape.samples > kMaxSamples) {
      throw Error(ExitCode::kBadData, "an epoch has more than 4,294,967,295 samples",
                  "lower data.train_weights, or train on a part of the corpus");
    }
  });
  if (shape.samples == 0) {
    throw Error(ExitCode::kBadData, "data.train_weights leave no pair of the corpus",
                "raise a weight");
  }
  return shape;
}

/// Turns counts into first positions, and writes the runs.
void write_runs(ByLengths& counts, SampleStoreWriter& store) {
  uint64_t position = 0;
  for (size_t tgt = 0; tgt < counts.size(); ++tgt) {
    for (size_t src = 0; src < counts[tgt].size(); ++src) {
      const uint64_t count = std::exchange(counts[tgt][src], position);
      if (count == 0) continue;
      position += count;
      const std::array lengths{static_cast<uint32_t>(src), static_cast<uint32_t>(tgt)};
      store.append_values<uint32_t>(kRunLengths, lengths);
      store.append_value<uint64_t>(kRunEnds, position);
    }
  }
}

}  // namespace

uint64_t SampleWeights::key() const {
  bool fractional = false, trivial = true;
  for (const double weight : weights) {
    trivial = trivial && weight == 1.0;
    fractional = fractional || weight != std::floor(weight);
  }
  if (trivial) return 0;
  const uint64_t hash = xxh3_64(weights.data(), weights.size() * sizeof(double));
  return fractional ? mix64(hash, seed) : hash;
}

uint64_t CorpusOrder::key_of(uint64_t corpus_key, const SampleWeights& weights) {
  return xxh3_64("order of pairs " + std::to_string(kOrderVersion) + "\n" + hex64(corpus_key) +
                 " " + hex64(weights.key()));
}

bool CorpusOrder::is_sound(const SampleStore& store, uint64_t num_pairs) {
  const auto samples = store.array<uint32_t>(kOrderSamples);
  const auto pairs = store.array<uint32_t>(kOrderPairs);
  const auto lengths = store.array<uint32_t>(kRunLengths);
  const auto ends = store.array<uint64_t>(kRunEnds);
  const auto all_below = [](std::span<const uint32_t> numbers, uint64_t bound) {
    return std::all_of(numbers.begin(), numbers.end(), [&](uint32_t i) { return i < bound; });
  };
  const bool are_samples = store.words().size() == 2 && !samples.empty() &&
                           all_below(samples, samples.size()) && all_below(pairs, num_pairs) &&
                           samples.size() == (pairs.empty() ? num_pairs : pairs.size());
  return are_samples && !ends.empty() && ends.front() > 0 && ends.back() == samples.size() &&
         std::adjacent_find(ends.begin(), ends.end(), std::greater_equal<>()) == ends.end() &&
         lengths.size() == 2 * ends.size() &&
         std::find(lengths.begin(), lengths.end(), 0) == lengths.end();
}

CorpusOrder::CorpusOrder(SampleStore store)
    : store_(std::move(store)),
      samples_(store_.array<uint32_t>(kOrderSamples)),
      pairs_(store_.array<uint32_t>(kOrderPairs)),
      src_tokens_(store_.words().at(0)),
      tgt_tokens_(store_.words().at(1)) {
  const auto lengths = store_.array<uint32_t>(kRunLengths);
  const auto ends = store_.array<uint64_t>(kRunEnds);
  for (size_t i = 0; i < ends.size(); ++i) runs_.add(lengths.subspan(2 * i, 2), ends[i]);
}

std::vector<uint64_t> build_order(const PairLengths& lengths, const SampleWeights& weights,
                                  SampleStoreWriter& store, uint64_t window) {
  Shape shape = count_samples(lengths, weights, store);
  write_runs(shape.begins, store);
  window = std::max(window, shape.samples / kMostWindows + 1);
  for (uint64_t first = 0; first < shape.samples; first += window) {
    std::vector<uint32_t> samples(std::min(window, shape.samples - first));
    ByLengths next = shape.begins;
    uint64_t sample = 0;
    for_each_sample(lengths.input_ends, weights, [&](uint64_t pair) {
      const uint64_t position = next[lengths.tgt(pair)][lengths.src(pair)]++;
      if (position >= first && position - first < samples.size()) {
        samples[position - first] = static_cast<uint32_t>(sample);
      }
      ++sample;
    });
    store.append_values<uint32_t>(kOrderSamples, samples);
  }
  return {shape.src_tokens, shape.tgt_tokens};
}

}  // namespace stretto::data
