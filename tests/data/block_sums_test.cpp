#include "data/block_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace stretto::data {
namespace {

std::vector<uint64_t> sums_of(const std::string& bytes, size_t step) {
  BlockSums sums;
  for (size_t at = 0; at < bytes.size(); at += step) {
    sums.update(bytes.data() + at, std::min(step, bytes.size() - at));
  }
  return sums.finish();
}

TEST(BlockSums, AreThoseOfTheBytesHoweverTheyCome) {
  std::string bytes(3 * kChecksumBlockBytes + 17, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31 + i / 256);
  const auto sums = sums_of(bytes, 1000);
  ASSERT_EQ(sums.size(), 4u);
  EXPECT_EQ(sums_of(bytes, bytes.size()), sums);
  for (const int64_t threads : {1, 8}) EXPECT_TRUE(has_sums(bytes, sums, threads));
  for (const size_t at : {size_t{0}, size_t{kChecksumBlockBytes}, bytes.size() - 1}) {
    std::string damaged = bytes;
    damaged[at] ^= 1;
    EXPECT_FALSE(has_sums(damaged, sums, 2)) << at;
  }
  bytes.resize(bytes.size() - 17);
  EXPECT_FALSE(has_sums(bytes, sums, 1)) << "a block is missing";
  EXPECT_FALSE(has_sums(bytes + std::string(18, 'x'), sums, 1));
}

TEST(BlockSums, OfManyBlocksAreComparedOnSeveralThreads) {
  std::string bytes(1100 * kChecksumBlockBytes, 'a');
  const auto sums = sums_of(bytes, kChecksumBlockBytes + 1);
  EXPECT_TRUE(has_sums(bytes, sums, 4));
  bytes[1000 * kChecksumBlockBytes] = 'b';
  EXPECT_FALSE(has_sums(bytes, sums, 4));
}

TEST(BlockSums, OfNothingAreNone) {
  EXPECT_TRUE(BlockSums().finish().empty());
  EXPECT_TRUE(has_sums("", {}, 2));
  EXPECT_FALSE(has_sums("a", {}, 2));
}

}  // namespace
}  // namespace stretto::data
