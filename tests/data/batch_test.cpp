#include "data/batch.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <variant>

#include "data/pairs/pair_columns.h"

namespace stretto::data {
namespace {

TEST(Batch, ConcatenationKeepsSequencesAndOrder) {
  const Batch a = pair_batch({7, 3}, {{1, 2, 3}, {0, 1, 3}}, {{9, 8}, {0, 1, 2}});
  const Batch b = pair_batch({5}, {{4, 5}, {0, 2}}, {{6, 6, 6}, {0, 3}});
  const Batch whole = concatenate({a, b});
  EXPECT_EQ(whole.sample_ids, (std::vector<int64_t>{7, 3, 5}));
  EXPECT_EQ(source(whole).values, (std::vector<int64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(source(whole).offsets, (std::vector<int32_t>{0, 1, 3, 5}));
  EXPECT_EQ(target(whole).offsets, (std::vector<int32_t>{0, 1, 2, 5}));
  EXPECT_EQ(target(whole).max_length(), 3);
  EXPECT_EQ(source(whole).length(2), 2);
}

TEST(Batch, PartsAreOfTheStreamOfTheWhole) {
  Batch whole = pair_batch({7, 3}, {{1, 2, 3}, {0, 1, 3}}, {{9, 8}, {0, 1, 2}});
  EXPECT_EQ(whole.stream, 0);
  whole.stream = 2;
  EXPECT_EQ(part(whole, 0, 1).stream, 2);
  EXPECT_EQ(even_part(whole, 1, 2).stream, 2);
  EXPECT_EQ(concatenate({part(whole, 0, 1), part(whole, 1, 2)}).stream, 2);
  EXPECT_THROW(concatenate({whole, pair_batch({5}, {{4, 5}, {0, 2}}, {{6, 6, 6}, {0, 3}})}),
               std::invalid_argument);
}

TEST(Batch, PartsAreOfTheEpochOfTheWhole) {
  Batch whole = pair_batch({7, 3}, {{1, 2, 3}, {0, 1, 3}}, {{9, 8}, {0, 1, 2}});
  const Batch first_epoch = whole;
  EXPECT_EQ(first_epoch.epoch, 0);
  whole.epoch = 4;
  EXPECT_EQ(part(whole, 0, 1).epoch, 4);
  EXPECT_EQ(even_part(whole, 1, 2).epoch, 4);
  EXPECT_EQ(concatenate({part(whole, 0, 1), part(whole, 1, 2)}).epoch, 4);
  EXPECT_THROW(concatenate({whole, first_epoch}), std::invalid_argument);
}

TEST(Batch, LanesStayWithTheirSamples) {
  Batch whole = pair_batch({7, 3, 5}, {{1, 2, 3}, {0, 1, 2, 3}}, {{9, 8, 7}, {0, 1, 2, 3}});
  EXPECT_TRUE(part(whole, 0, 1).lanes.empty());
  whole.lanes = {2, 0, 1};
  EXPECT_EQ(part(whole, 1, 3).lanes, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(even_part(whole, 0, 3).lanes, std::vector<int32_t>{2});
  EXPECT_EQ(concatenate({part(whole, 0, 1), part(whole, 1, 3)}).lanes, whole.lanes);
  Batch without = part(whole, 0, 1);
  without.lanes.clear();
  EXPECT_THROW(concatenate({whole, without}), std::invalid_argument);
  EXPECT_THROW(concatenate({without, whole}), std::invalid_argument);
}

TEST(Batch, OfNothingIsEmpty) {
  const Batch whole = concatenate({});
  EXPECT_EQ(whole.num_sequences(), 0);
  EXPECT_TRUE(whole.columns.empty());
  EXPECT_EQ(pair_batch().num_sequences(), 0);
  EXPECT_EQ(source(pair_batch()).num_sequences(), 0);
  EXPECT_EQ(target(pair_batch()).max_length(), 0);
}

/// Speech as a family of another kind has it: frames of two numbers, labels, and a byte for each
/// sample.
Batch of_frames() {
  Ragged<float> frames;
  frames.width = 2;
  PackedTokens labels;
  Ragged<uint8_t> flags;
  for (const int64_t frame_count : {3, 1, 4}) {
    std::vector<float> values;
    for (int64_t i = 0; i < 2 * frame_count; ++i) {
      values.push_back(static_cast<float>(10 * frame_count + i));
    }
    frames.append(values);
    labels.append({frame_count});
    flags.append(std::vector<uint8_t>{static_cast<uint8_t>(frame_count)});
  }
  return {.sample_ids = {4, 5, 6}, .columns = {frames, labels, flags}};
}

TEST(Batch, RowsOfSeveralValuesStayTogether) {
  const Batch whole = of_frames();
  const auto& frames = whole.column<float>(0);
  EXPECT_EQ(frames.num_rows(), 8);
  EXPECT_EQ(frames.length(2), 4);
  EXPECT_EQ(frames.max_length(), 4);
  const Batch middle = part(whole, 1, 3);
  const auto& rest = middle.column<float>(0);
  EXPECT_EQ(rest.width, 2);
  EXPECT_EQ(rest.offsets, (std::vector<int32_t>{0, 1, 5}));
  EXPECT_EQ(rest.values.size(), 10u);
  EXPECT_EQ(rest.sequence(0).front(), 10);
  EXPECT_EQ(rest.sequence(1).back(), 47);
  EXPECT_EQ(middle.column<uint8_t>(2).values, (std::vector<uint8_t>{1, 4}));
  const Batch again = concatenate({part(whole, 0, 1), middle});
  EXPECT_EQ(again.column<float>(0).values, frames.values);
  EXPECT_EQ(again.column<float>(0).offsets, frames.offsets);
  EXPECT_EQ(again.column<int64_t>(1).values, whole.column<int64_t>(1).values);
}

TEST(Batch, ColumnsOfDifferentKindsAreNotPutTogether) {
  const Batch frames = of_frames(), pairs = pair_batch({1}, {{3}, {0, 1}}, {{3}, {0, 1}});
  EXPECT_THROW(concatenate({frames, pairs}), std::invalid_argument);
  Batch wider = frames;
  wider.column<float>(0).width = 1;
  EXPECT_THROW(concatenate({frames, wider}), std::invalid_argument);
  EXPECT_THROW((void)pairs.column<float>(0), std::bad_variant_access);
  EXPECT_THROW((void)pairs.column<int64_t>(2), std::out_of_range);
}

TEST(Batch, PartsPutTogetherAreTheWhole) {
  const Batch whole =
      pair_batch({7, 3, 5}, {{1, 2, 3, 4, 5}, {0, 1, 3, 5}}, {{9, 8, 6, 6, 6}, {0, 1, 2, 5}});
  const Batch first = part(whole, 0, 1), rest = part(whole, 1, 3);
  EXPECT_EQ(source(first).values, (std::vector<int64_t>{1}));
  EXPECT_EQ(target(rest).offsets, (std::vector<int32_t>{0, 1, 4}));
  const Batch again = concatenate({first, rest});
  EXPECT_EQ(again.sample_ids, whole.sample_ids);
  EXPECT_EQ(source(again).values, source(whole).values);
  EXPECT_EQ(target(again).offsets, target(whole).offsets);
}

/// Sentence i has lengths[i] tokens on both sides together.
Batch of_lengths(const std::vector<int64_t>& lengths) {
  Batch batch = pair_batch();
  for (size_t i = 0; i < lengths.size(); ++i) {
    batch.sample_ids.push_back(static_cast<int64_t>(i));
    for (int64_t token = 0; token < lengths[i]; ++token) {
      (token % 2 == 0 ? source(batch) : target(batch)).values.push_back(token);
    }
    source(batch).offsets.push_back(static_cast<int32_t>(source(batch).values.size()));
    target(batch).offsets.push_back(static_cast<int32_t>(target(batch).values.size()));
  }
  return batch;
}

std::vector<std::vector<int64_t>> samples_of_parts(const Batch& batch, int64_t parts) {
  std::vector<std::vector<int64_t>> samples;
  for (int64_t number = 0; number < parts; ++number) {
    samples.push_back(even_part(batch, number, parts).sample_ids);
  }
  return samples;
}

TEST(Batch, EvenPartsHaveAboutEquallyManyTokens) {
  using Samples = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(samples_of_parts(of_lengths({4, 4, 4, 4}), 2), (Samples{{0, 1}, {2, 3}}));
  EXPECT_EQ(samples_of_parts(of_lengths({12, 4, 4, 4}), 2), (Samples{{0}, {1, 2, 3}}));
  EXPECT_EQ(samples_of_parts(of_lengths({2, 2, 2, 30}), 2), (Samples{{0, 1, 2}, {3}}));
  EXPECT_EQ(samples_of_parts(of_lengths({5, 5, 5, 5, 5, 5, 5}), 3),
            (Samples{{0, 1}, {2, 3, 4}, {5, 6}}));
  EXPECT_EQ(samples_of_parts(of_lengths({90, 2, 2}), 3), (Samples{{0}, {1}, {2}}))
      << "none is empty as long as there are sentences";
  EXPECT_EQ(samples_of_parts(of_lengths({2, 2, 90}), 3), (Samples{{0}, {1}, {2}}));
}

TEST(Batch, FewerSentencesThanPartsLeaveTheLastOnesEmpty) {
  using Samples = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(samples_of_parts(of_lengths({4}), 3), (Samples{{0}, {}, {}}));
  EXPECT_EQ(samples_of_parts(of_lengths({4, 9}), 3), (Samples{{0}, {1}, {}}));
}

TEST(Batch, EvenPartsPutTogetherAreTheWhole) {
  const Batch whole = of_lengths({3, 9, 2, 2, 14, 6, 5, 5, 8, 2});
  for (int64_t parts = 1; parts < 14; ++parts) {
    std::vector<Batch> all;
    for (int64_t number = 0; number < parts; ++number)
      all.push_back(even_part(whole, number, parts));
    const Batch again = concatenate(all);
    EXPECT_EQ(again.sample_ids, whole.sample_ids) << parts;
    EXPECT_EQ(source(again).values, source(whole).values) << parts;
    EXPECT_EQ(target(again).offsets, target(whole).offsets) << parts;
  }
}

}  // namespace
}  // namespace stretto::data
