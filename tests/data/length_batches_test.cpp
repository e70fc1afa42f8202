#include "data/length_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tests/base/failure.h"

namespace stretto::data {
namespace {

using Lengths = std::vector<uint32_t>;
using Ids = std::vector<int64_t>;

/// Samples of one column: sample i has lengths[i] rows, each of which is i.
class Sounds final : public LengthSamples {
 public:
  explicit Sounds(Lengths lengths) : lengths_(lengths), order_(order_by_length({lengths})) {}

  const LengthRuns& runs() const override { return order_.runs; }
  int64_t sample_at(uint64_t position) const override { return order_.samples[position]; }
  Batch empty_batch() const override { return {.sample_ids = {}, .columns = {Ragged<float>{}}}; }
  void append(int64_t epoch, int64_t sample, Batch& batch) const override {
    const float value = static_cast<float>(sample) + 0.125F * static_cast<float>(epoch);
    batch.sample_ids.push_back(sample);
    batch.column<float>(0).append(
        std::vector<float>(lengths_.at(static_cast<size_t>(sample)), value));
  }

 private:
  Lengths lengths_;
  LengthOrder order_;
};

/// Samples of several columns whose lengths alone matter.
class Shapes final : public LengthSamples {
 public:
  explicit Shapes(const std::vector<Lengths>& columns) : order_(order_by_length(columns)) {}

  const LengthRuns& runs() const override { return order_.runs; }
  int64_t sample_at(uint64_t position) const override { return order_.samples[position]; }
  Batch empty_batch() const override { return {}; }
  void append(int64_t /*epoch*/, int64_t sample, Batch& batch) const override {
    batch.sample_ids.push_back(sample);
  }

 private:
  LengthOrder order_;
};

std::vector<Ids> batches_of(const BatchSource& source, int64_t epoch = 0) {
  std::vector<Ids> all;
  for (int64_t i = 0; i < source.num_batches(); ++i) {
    all.push_back(source.load(epoch, i).sample_ids);
  }
  return all;
}

std::vector<Ids> cut(const std::vector<Lengths>& columns, const LengthBounds& bounds) {
  return batches_of(
      *make_length_batches(std::make_shared<Shapes>(columns), bounds, Shuffle::kNo, 0));
}

/// 300 samples of 1 to 9 rows.
Lengths many_lengths() {
  Lengths lengths;
  for (uint64_t i = 0; i < 300; ++i) lengths.push_back(static_cast<uint32_t>(1 + mix64(5, i) % 9));
  return lengths;
}

TEST(LengthOrder, SortsByTheFirstColumnThenByTheNextThenByNumber) {
  const auto order = order_by_length({{2, 1, 2, 1, 2}, {7, 3, 5, 3, 7}});
  EXPECT_EQ(order.samples, (Lengths{1, 3, 2, 0, 4}));
  EXPECT_EQ(order.runs.begins, (std::vector<uint64_t>{0, 2, 3, 5}));
  EXPECT_EQ(order.runs.lengths, (Lengths{1, 3, 2, 5, 2, 7}));
  EXPECT_EQ(order_by_length({{}}).runs.size(), 0U);
}

TEST(LengthOrder, IsTheSameOfLengthsThatAreTooLongToBeCounted) {
  Lengths first, second;
  for (uint32_t i = 0; i < 200; ++i) {
    first.push_back(i * 7 % 5);
    second.push_back(i * 11 % 13);
  }
  Lengths wanted(first.size());
  for (uint32_t i = 0; i < wanted.size(); ++i) wanted[i] = i;
  std::stable_sort(wanted.begin(), wanted.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(first[a], second[a]) < std::pair(first[b], second[b]);
  });
  EXPECT_EQ(order_by_length({first, second}).samples, wanted);
  for (auto& length : first) length *= 1'000'000;
  const auto order = order_by_length({first, second});
  EXPECT_EQ(order.samples, wanted);
  EXPECT_EQ(order.runs.size(), 65U);
  EXPECT_EQ(order.runs.begins.back(), wanted.size());
}

TEST(LengthOrder, NeedsALengthOfEachSampleInEachColumn) {
  EXPECT_THROW(order_by_length({{1, 2}, {1}}), std::invalid_argument);
}

TEST(LengthBatches, OfOneColumnAreFilledFromShortToLong) {
  // In order: 1 1 2 2 2 5.
  const std::vector<Lengths> sounds{{2, 1, 5, 2, 1, 2}};
  EXPECT_EQ(cut(sounds, {.max_rows = {4}}), (std::vector<Ids>{{1, 4, 0}, {3, 5}, {2}}));
  EXPECT_EQ(cut(sounds, {.max_rows = {5}}), (std::vector<Ids>{{1, 4, 0}, {3, 5}, {2}}));
  EXPECT_EQ(cut(sounds, {.max_rows = {6}}), (std::vector<Ids>{{1, 4, 0, 3}, {5}, {2}}));
  EXPECT_EQ(cut(sounds, {.max_rows = {6}, .max_samples = 2}),
            (std::vector<Ids>{{1, 4}, {0, 3}, {5}, {2}}));
  EXPECT_EQ(cut(sounds, {.max_rows = {0}, .max_samples = 4}),
            (std::vector<Ids>{{1, 4, 0, 3}, {5, 2}}));
  EXPECT_EQ(cut(sounds, {.max_rows = {0}}), (std::vector<Ids>{{1, 4, 0, 3, 5, 2}}));
  EXPECT_EQ(cut({{}}, {.max_rows = {4}}), std::vector<Ids>{});
}

TEST(LengthBatches, AreNoMoreThanTheLongestSamplesWouldMake) {
  EXPECT_EQ(most_batches(0, 9, {.max_rows = {20}}), 0);
  EXPECT_EQ(most_batches(2, 50, {.max_rows = {200}}), 1);
  EXPECT_EQ(most_batches(9, 50, {.max_rows = {200, 100}}), 5) << "two in each";
  EXPECT_EQ(most_batches(9, 50, {.max_rows = {0}, .max_samples = 4}), 3);
  EXPECT_EQ(most_batches(9, 50, {.max_rows = {0}}), 1);
  EXPECT_EQ(most_batches(3, 50, {.max_rows = {20}}), 3) << "each is a batch of its own";
  const Lengths short_and_long = many_lengths(), longest(300, 9);
  for (const int64_t rows : {9, 10, 26, 27, 100}) {
    for (const int64_t samples : {0, 1, 2, 7}) {
      const LengthBounds bounds{.max_rows = {rows}, .max_samples = samples};
      const int64_t most = most_batches(300, 9, bounds);
      EXPECT_LE(std::ssize(cut({short_and_long}, bounds)), most) << rows << ", " << samples;
      EXPECT_EQ(std::ssize(cut({longest}, bounds)), most) << rows << ", " << samples;
    }
  }
}

// Speech has thousands of frames beside a few letters, and some of it no letter at all.
TEST(LengthBatches, HaveABoundForEachColumn) {
  const std::vector<Lengths> speech{{100, 100, 100, 100}, {0, 4, 4, 9}};
  EXPECT_EQ(cut(speech, {.max_rows = {300, 100}}), (std::vector<Ids>{{0, 1, 2}, {3}}));
  EXPECT_EQ(cut(speech, {.max_rows = {1000, 8}}), (std::vector<Ids>{{0, 1, 2}, {3}}));
  EXPECT_EQ(cut(speech, {.max_rows = {1000, 7}}), (std::vector<Ids>{{0, 1}, {2}, {3}}));
  EXPECT_EQ(cut(speech, {.max_rows = {0, 17}}), (std::vector<Ids>{{0, 1, 2, 3}}));
}

TEST(LengthBatches, OfASampleAboveABoundAreTheFamilysErrorOrItAlone) {
  const std::vector<Lengths> sounds{{3, 9, 1}};
  EXPECT_EQ(cut(sounds, {.max_rows = {4}}), (std::vector<Ids>{{2, 0}, {1}}));
  const LengthBounds strict{.max_rows = {4}, .too_long = [](std::span<const uint32_t> lengths) {
                              return Error(ExitCode::kBadData,
                                           std::to_string(lengths[0]) + " frames are too many",
                                           "cut them");
                            }};
  const Error error = testing::failure(ExitCode::kBadData, [&] { cut(sounds, strict); });
  EXPECT_EQ(std::string(error.what()), "9 frames are too many");
}

TEST(LengthBatches, HoldEachSampleOnceInEveryEpochWithItsRows) {
  const auto lengths = many_lengths();
  const auto source = make_length_batches(std::make_shared<Sounds>(lengths), {.max_rows = {40}},
                                          Shuffle::kEachEpoch, 11);
  std::set<std::vector<Ids>> orders;
  for (const int64_t epoch : {0, 1, 7}) {
    Ids all;
    for (int64_t i = 0; i < source->num_batches(); ++i) {
      const Batch batch = source->load(epoch, i);
      EXPECT_EQ(batch.sample_ids, source->sample_ids(epoch, i));
      EXPECT_LE(batch.column<float>(0).num_rows(), 40);
      for (int64_t k = 0; k < batch.num_sequences(); ++k) {
        const int64_t sample = batch.sample_ids[static_cast<size_t>(k)];
        const auto rows = batch.column<float>(0).sequence(k);
        ASSERT_EQ(rows.size(), lengths[static_cast<size_t>(sample)]);
        EXPECT_EQ(rows.front(), static_cast<float>(sample) + 0.125F * static_cast<float>(epoch));
        all.push_back(sample);
      }
    }
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all.size(), lengths.size());
    for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<int64_t>(i));
    orders.insert(batches_of(*source, epoch));
  }
  EXPECT_EQ(orders.size(), 3U) << "each epoch has another order";
  EXPECT_THROW(source->load(0, source->num_batches()), std::out_of_range);
  EXPECT_THROW(source->load(0, -1), std::out_of_range);
}

// The rule of all families, written plainly: runs that were started with it go on with it.
TEST(LengthBatches, AreShuffledByPermutationsOfSeedAndEpoch) {
  const auto lengths = many_lengths();
  constexpr uint64_t kSeed = 23, kEpoch = 5, kRows = 40;
  // The order of lengths, in which samples of one length are permuted.
  std::vector<std::vector<int64_t>> runs;
  for (uint32_t length = 1; length <= 9; ++length) {
    runs.emplace_back();
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] == length) runs.back().push_back(static_cast<int64_t>(i));
    }
    ASSERT_FALSE(runs.back().empty());
  }
  const uint64_t key = mix64(kSeed, kEpoch);
  Ids order;
  for (size_t run = 0; run < runs.size(); ++run) {
    const Permutation places(runs[run].size(), mix64(key, run));
    for (uint64_t i = 0; i < runs[run].size(); ++i) order.push_back(runs[run][places(i)]);
  }
  // Cut from short to long, then permuted as whole batches.
  std::vector<Ids> batches{{}};
  uint64_t rows = 0;
  for (const int64_t sample : order) {
    const uint64_t length = lengths[static_cast<size_t>(sample)];
    if (rows + length > kRows) {
      batches.emplace_back();
      rows = 0;
    }
    rows += length;
    batches.back().push_back(sample);
  }
  const Permutation places(batches.size(), key);
  std::vector<Ids> expected;
  for (uint64_t i = 0; i < batches.size(); ++i) expected.push_back(batches[places(i)]);

  const auto source =
      make_length_batches(std::make_shared<Sounds>(lengths),
                          {.max_rows = {static_cast<int64_t>(kRows)}}, Shuffle::kEachEpoch, kSeed);
  EXPECT_EQ(batches_of(*source, static_cast<int64_t>(kEpoch)), expected);
}

TEST(LengthBatches, RefuseAnotherNumberOfColumns) {
  EXPECT_THROW(cut({{1, 2}}, {.max_rows = {4, 4}}), std::invalid_argument);
  LengthRuns runs{.num_columns = 2};
  EXPECT_THROW(runs.add(std::array<uint32_t, 1>{3}, 1), std::invalid_argument);
}

}  // namespace
}  // namespace stretto::data
