#include "models/packed.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "base/random.h"

namespace stretto::models {
namespace {

const std::vector<int64_t> kSamples{17, 4, 99, 2};

/// Sequences of these lengths, of rows with `width` numbers.
template <class T>
data::Ragged<T> counted_column(const std::vector<int64_t>& lengths, int64_t width) {
  data::Ragged<T> column;
  column.width = width;
  T next = 0;
  for (const int64_t length : lengths) {
    for (int64_t i = 0; i < length * width; ++i) column.values.push_back(next++);
    column.close_sequence();
  }
  return column;
}

TEST(PackedRows, OfValuesHaveThePlacesBoundsAndKeysOfTokens) {
  const std::vector<int64_t> lengths{4, 0, 1, 3};
  const auto tokens = pack(counted_column<int64_t>(lengths, 1), &kSamples, at::kCPU);
  const auto frames = pack(counted_column<float>(lengths, 3), &kSamples, at::kCPU);
  const auto pixels = pack(counted_column<uint8_t>(lengths, 3), nullptr, at::kCPU);
  EXPECT_FALSE(tokens.values.defined());
  for (const nn::PackedRows& rows : {frames, pixels}) {
    EXPECT_FALSE(rows.ids.defined());
    EXPECT_EQ(rows.num_rows(), 8);
    EXPECT_TRUE(at::equal(rows.positions, tokens.positions));
    EXPECT_TRUE(at::equal(rows.offsets.values, tokens.offsets.values));
    EXPECT_EQ(rows.offsets.max_length, 4);
    EXPECT_TRUE(at::equal(rows.values.to(at::kLong), at::arange(24).view({8, 3})));
  }
  EXPECT_TRUE(at::equal(frames.row_keys, tokens.row_keys));
  EXPECT_FALSE(pixels.row_keys.defined());
  EXPECT_EQ(frames.values.scalar_type(), at::kFloat);
  EXPECT_EQ(pixels.values.scalar_type(), at::kByte);
}

TEST(PackedRows, BehindAStrideHavePlacesOfTheirOwnAndKeysOfTheRowsTheyComeFrom) {
  const std::vector<int64_t> lengths{7, 1, 0, 4};
  const auto rows = pack(counted_column<float>(lengths, 2), &kSamples, at::kCPU);
  for (const int64_t stride : {1, 2, 3, 10}) {
    SCOPED_TRACE(stride);
    std::vector<int64_t> positions, keys;
    std::vector<int32_t> offsets{0};
    for (size_t i = 0; i < lengths.size(); ++i) {
      for (int64_t t = 0; t * stride < lengths[i]; ++t) {
        positions.push_back(t);
        keys.push_back(static_cast<int64_t>(
            mix64(static_cast<uint64_t>(kSamples[i]), static_cast<uint64_t>(t * stride))));
      }
      offsets.push_back(static_cast<int32_t>(positions.size()));
    }
    const auto count = static_cast<int64_t>(positions.size());
    const auto behind = behind_stride(rows, stride, at::ones({count, 5}));
    EXPECT_TRUE(at::equal(behind.positions, at::tensor(positions, at::kLong)));
    EXPECT_TRUE(at::equal(behind.row_keys, at::tensor(keys, at::kLong)));
    EXPECT_TRUE(at::equal(behind.offsets.values, at::tensor(offsets, at::kInt)));
    EXPECT_EQ(behind.offsets.max_length, (7 + stride - 1) / stride);
    EXPECT_EQ(behind.values.size(1), 5);
    EXPECT_FALSE(behind.ids.defined());
    EXPECT_THROW(behind_stride(rows, stride, at::ones({count + 1, 5})), c10::Error);
  }
  const auto keyless = pack(counted_column<float>(lengths, 2), nullptr, at::kCPU);
  EXPECT_FALSE(behind_stride(keyless, 2, at::ones({7, 1})).row_keys.defined());
}

TEST(PackedRows, OfValuesLoseTheWordsThatTokensWould) {
  const std::vector<int64_t> lengths{5, 6};
  const nn::DropoutSource source{
      .training = true,
      .key = 3,
      .row_keys = pack(counted_column<int64_t>(lengths, 1), &kSamples, at::kCPU).row_keys};
  const auto words =
      drop_words(pack(counted_column<int64_t>(lengths, 1), &kSamples, at::kCPU), source, 0.5, 7);
  const auto frames =
      drop_words(pack(counted_column<float>(lengths, 2), &kSamples, at::kCPU), source, 0.5, 7);
  EXPECT_GT(words.dropped_words.sum().item<int64_t>(), 0);
  EXPECT_TRUE(at::equal(frames.dropped_words, words.dropped_words));
}

}  // namespace
}  // namespace stretto::models
