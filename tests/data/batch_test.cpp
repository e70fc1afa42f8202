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

}  // namespace
}  // namespace stretto::data
