#include "data/pairs/corpus_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tests/base/failure.h"

namespace stretto::data {
namespace {

/// Pairs of random lengths in two inputs.
struct SomePairs {
  explicit SomePairs(uint64_t count) {
    RandomStream random(3);
    uint64_t end = 0;
    for (uint64_t i = 0; i < count; ++i) {
      src.push_back(static_cast<uint32_t>(1 + random.below(5)));
      ends.push_back(end += src.back() + 1 + random.below(4));
    }
    input_ends = {count / 3, count};
  }
  PairLengths lengths() const { return {.ends = ends, .src_lens = src, .input_ends = input_ends}; }

  std::vector<uint64_t> ends, input_ends;
  std::vector<uint32_t> src;
};

CorpusOrder order_of(const SomePairs& pairs, const SampleWeights& weights, uint64_t window) {
  auto store = samples_in_memory(kNumOrderParts, [&](SampleStoreWriter& writer) {
    return build_order(pairs.lengths(), weights, writer, window);
  });
  EXPECT_TRUE(CorpusOrder::is_sound(store, pairs.ends.size()));
  return CorpusOrder(std::move(store));
}

TEST(CorpusOrder, IsByTargetThenSourceThenNumberWhateverItsWindows) {
  const SomePairs pairs(100);
  const auto lengths = pairs.lengths();
  for (const auto& weights : {SampleWeights{}, SampleWeights{.weights = {2, 0.5}, .seed = 4}}) {
    const auto whole = order_of(pairs, weights, 1000);
    std::vector<uint32_t> expected(whole.num_samples());
    std::iota(expected.begin(), expected.end(), 0);
    const auto key = [&](uint32_t sample) {
      const uint64_t pair = whole.pair_of(sample);
      return std::pair(lengths.tgt(pair), lengths.src(pair));
    };
    std::stable_sort(expected.begin(), expected.end(),
                     [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
    for (const uint64_t window : {uint64_t{1000}, uint64_t{13}, uint64_t{1}}) {
      const auto order = order_of(pairs, weights, window);
      ASSERT_EQ(order.num_samples(), whole.num_samples());
      EXPECT_EQ(order.src_tokens(), whole.src_tokens());
      for (uint64_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(order.sample_at(i), expected[i]) << window;
        ASSERT_EQ(order.pair_of(i), whole.pair_of(i));
      }
    }
    const auto& runs = whole.runs();
    for (size_t run = 0; run < runs.size(); ++run) {
      for (uint64_t i = runs.begins[run]; i < runs.begins[run + 1]; ++i) {
        const auto [tgt, src] = key(expected[i]);
        ASSERT_EQ(runs.lengths_of(run)[0], src);
        ASSERT_EQ(runs.lengths_of(run)[1], tgt);
      }
    }
  }
}

TEST(CorpusOrder, CountsTheTokensOfAllSamples) {
  const SomePairs pairs(40);
  const auto once = order_of(pairs, {}, 100), twice = order_of(pairs, {.weights = {2, 2}}, 100);
  EXPECT_EQ(once.src_tokens(), std::accumulate(pairs.src.begin(), pairs.src.end(), 0U));
  EXPECT_EQ(once.src_tokens() + once.tgt_tokens(), pairs.ends.back());
  EXPECT_EQ(twice.num_samples(), 80U);
  EXPECT_EQ(twice.tgt_tokens(), 2 * once.tgt_tokens());
}

TEST(CorpusOrder, OfNothingIsRefused) {
  const SomePairs pairs(10);
  testing::failure(ExitCode::kBadData, [&] { order_of(pairs, {.weights = {0, 0}}, 100); });
}

TEST(CorpusOrder, ThatNamesWhatIsNotThereIsNotSound) {
  const auto is_sound = [](const std::vector<uint32_t>& samples, const std::vector<uint32_t>& pairs,
                           const std::vector<uint32_t>& lengths,
                           const std::vector<uint64_t>& ends) {
    return CorpusOrder::is_sound(
        samples_in_memory(kNumOrderParts,
                          [&](SampleStoreWriter& writer) {
                            writer.append_values<uint32_t>(kOrderSamples, samples);
                            writer.append_values<uint32_t>(kOrderPairs, pairs);
                            writer.append_values<uint32_t>(kRunLengths, lengths);
                            writer.append_values<uint64_t>(kRunEnds, ends);
                            return std::vector<uint64_t>{5, 5};
                          }),
        3);
  };
  EXPECT_TRUE(is_sound({0, 2, 1}, {}, {1, 1, 2, 2}, {1, 3}));
  EXPECT_TRUE(is_sound({1, 0}, {2, 2}, {1, 1}, {2}));
  EXPECT_FALSE(is_sound({1, 0}, {2, 3}, {1, 1}, {2})) << "a pair";
  EXPECT_FALSE(is_sound({2, 0}, {2, 2}, {1, 1}, {2})) << "a sample";
  EXPECT_FALSE(is_sound({1, 0}, {}, {1, 1}, {2})) << "fewer samples than pairs";
  EXPECT_FALSE(is_sound({1, 0}, {2}, {1, 1}, {2})) << "a sample without a pair";
  EXPECT_FALSE(is_sound({0, 2, 1}, {}, {1, 1, 2, 2}, {3, 1})) << "ends of runs";
  EXPECT_FALSE(is_sound({0, 2, 1}, {}, {1, 1, 2, 2}, {0, 3})) << "an empty run";
  EXPECT_FALSE(is_sound({0, 2, 1}, {}, {1, 1, 2, 0}, {1, 3})) << "no length";
  EXPECT_FALSE(is_sound({0, 2, 1}, {}, {1, 1, 2}, {1, 3})) << "lengths";
  EXPECT_FALSE(is_sound({}, {}, {}, {})) << "nothing";
}

}  // namespace
}  // namespace stretto::data
