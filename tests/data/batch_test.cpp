#include "data/batch.h"

#include <gtest/gtest.h>

namespace stretto::data {
namespace {

TEST(Batch, ConcatenationKeepsSequencesAndOrder) {
  const Batch a{.sample_ids = {7, 3}, .src = {{1, 2, 3}, {0, 1, 3}}, .tgt = {{9, 8}, {0, 1, 2}}};
  const Batch b{.sample_ids = {5}, .src = {{4, 5}, {0, 2}}, .tgt = {{6, 6, 6}, {0, 3}}};
  const Batch whole = concatenate({a, b});
  EXPECT_EQ(whole.sample_ids, (std::vector<int64_t>{7, 3, 5}));
  EXPECT_EQ(whole.src.ids, (std::vector<int64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(whole.src.offsets, (std::vector<int32_t>{0, 1, 3, 5}));
  EXPECT_EQ(whole.tgt.offsets, (std::vector<int32_t>{0, 1, 2, 5}));
  EXPECT_EQ(whole.tgt.max_length(), 3);
  EXPECT_EQ(whole.src.length(2), 2);
}

TEST(Batch, OfNothingIsEmpty) {
  const Batch whole = concatenate({});
  EXPECT_EQ(whole.num_sequences(), 0);
  EXPECT_EQ(whole.src.num_sequences(), 0);
  EXPECT_EQ(whole.src.max_length(), 0);
}

TEST(Batch, PartsPutTogetherAreTheWhole) {
  const Batch whole{.sample_ids = {7, 3, 5},
                    .src = {{1, 2, 3, 4, 5}, {0, 1, 3, 5}},
                    .tgt = {{9, 8, 6, 6, 6}, {0, 1, 2, 5}}};
  const Batch first = part(whole, 0, 1), rest = part(whole, 1, 3);
  EXPECT_EQ(first.src.ids, (std::vector<int64_t>{1}));
  EXPECT_EQ(rest.tgt.offsets, (std::vector<int32_t>{0, 1, 4}));
  const Batch again = concatenate({first, rest});
  EXPECT_EQ(again.sample_ids, whole.sample_ids);
  EXPECT_EQ(again.src.ids, whole.src.ids);
  EXPECT_EQ(again.tgt.offsets, whole.tgt.offsets);
}

/// Sentence i has lengths[i] tokens on both sides together.
Batch of_lengths(const std::vector<int64_t>& lengths) {
  Batch batch;
  for (size_t i = 0; i < lengths.size(); ++i) {
    batch.sample_ids.push_back(static_cast<int64_t>(i));
    for (int64_t token = 0; token < lengths[i]; ++token) {
      (token % 2 == 0 ? batch.src : batch.tgt).ids.push_back(token);
    }
    batch.src.offsets.push_back(static_cast<int32_t>(batch.src.ids.size()));
    batch.tgt.offsets.push_back(static_cast<int32_t>(batch.tgt.ids.size()));
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
    EXPECT_EQ(again.src.ids, whole.src.ids) << parts;
    EXPECT_EQ(again.tgt.offsets, whole.tgt.offsets) << parts;
  }
}

}  // namespace
}  // namespace stretto::data
