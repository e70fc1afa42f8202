#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace stretto {
namespace {

using Words = std::array<uint32_t, 4>;

// Known answers of Random123 (kat_vectors, philox4x32 10).
TEST(Philox, AgreesWithPublishedVectors) {
  EXPECT_EQ(Philox::at(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox::at(~0ull, ~0ull, ~0ull),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0: the digits of pi
  EXPECT_EQ(Philox::at(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, BeginsWithTheFirstBlocksOfPhilox) {
  RandomStream stream(5, 7);
  for (uint64_t block = 0; block < 3; ++block) {
    for (const uint32_t word : Philox::at(5, 7, block)) EXPECT_EQ(stream.next32(), word);
  }
}

TEST(RandomStream, UniformStaysInTheHalfOpenUnitIntervalWithTheRightMoments) {
  RandomStream stream(1);
  double sum = 0, squares = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = stream.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.005);
}

TEST(RandomStream, NormalHasMeanZeroVarianceOneAndNormalTails) {
  RandomStream stream(2);
  double sum = 0, squares = 0;
  int beyond_two = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = stream.normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    beyond_two += std::abs(x) > 2 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1, 0.03);
  EXPECT_NEAR(static_cast<double>(beyond_two) / kDraws, 0.0455, 0.005);
}

TEST(RandomStream, BelowGivesEveryValueAboutEquallyOften) {
  RandomStream stream(3);
  std::vector<int> counts(6);
  for (int i = 0; i < 60000; ++i) ++counts.at(stream.below(6));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
  EXPECT_EQ(stream.below(1), 0u);
}

// With a plain modulo the lower third would come twice as often as the rest.
TEST(RandomStream, BelowHasNoModuloBiasForHugeBounds) {
  RandomStream stream(4);
  constexpr uint64_t kBound = 3ull << 62;
  int low = 0;
  for (int i = 0; i < 30000; ++i) low += stream.below(kBound) < (1ull << 62) ? 1 : 0;
  EXPECT_NEAR(low, 10000, 500);
}

TEST(Permutation, IsABijectionForEverySmallSize) {
  for (uint64_t size = 1; size <= 300; ++size) {
    const Permutation permutation(size, mix64(size));
    std::vector<bool> seen(size);
    for (uint64_t i = 0; i < size; ++i) {
      const uint64_t to = permutation(i);
      ASSERT_LT(to, size);
      ASSERT_FALSE(seen[to]) << "size " << size << ", " << i << " -> " << to;
      seen[to] = true;
    }
  }
}

TEST(Permutation, StaysInRangeForHugeSizes) {
  for (const uint64_t size : {(1ull << 40) + 1, 1ull << 62, (1ull << 62) + 1, ~0ull}) {
    const Permutation permutation(size, 9);
    std::set<uint64_t> images;
    for (uint64_t i = 0; i < 100; ++i) images.insert(permutation(size - 1 - i));
    EXPECT_EQ(images.size(), 100u);
    EXPECT_LT(*images.rbegin(), size);
  }
}

TEST(Permutation, DiffersWithItsKey) {
  std::set<std::vector<uint64_t>> orders;
  for (uint64_t key = 0; key < 200; ++key) {
    const Permutation permutation(20, key);
    std::vector<uint64_t> order;
    for (uint64_t i = 0; i < 20; ++i) order.push_back(permutation(i));
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 200u);
}

// 12 places x 12 values; each cell expects 12000 / 12 = 1000 with a deviation of about 30.
TEST(Permutation, PutsEveryIndexEverywhereAboutEquallyOften) {
  std::vector<int> counts(12 * 12);
  for (uint64_t key = 0; key < 12000; ++key) {
    const Permutation permutation(12, mix64(key));
    for (uint64_t i = 0; i < 12; ++i) ++counts[i * 12 + permutation(i)];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
}

}  // namespace
}  // namespace stretto
