#include "decoding/likeliest_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "decoding/sampling_rules.h"

namespace stretto::decoding {
namespace {

/// Every seventh token is forbidden; with few values, many are equal.
std::vector<float> row_of(size_t size, int64_t values) {
  RandomStream random(3);
  std::vector<float> row;
  for (size_t i = 0; i < size; ++i) {
    const auto value =
        static_cast<float>(std::floor(random.uniform() * static_cast<double>(values)));
    row.push_back(i % 7 == 0 ? kNever : -value);
  }
  return row;
}

std::vector<int64_t> all_sorted(const std::vector<float>& row) {
  std::vector<int64_t> tokens(row.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto value = [&](int64_t token) { return row[static_cast<size_t>(token)]; };
  std::erase_if(tokens, [&](int64_t token) { return !(value(token) > kNever); });
  std::ranges::stable_sort(tokens, [&](int64_t a, int64_t b) { return value(a) > value(b); });
  return tokens;
}

TEST(LikeliestTokens, AreTheFirstOfAllInTheirOrder) {
  for (const size_t size : {1U, 63U, 64U, 65U, 200U, 1000U}) {
    for (const int64_t values : {2, 10, 1000000}) {
      const std::vector<float> row = row_of(size, values);
      const std::vector<int64_t> all = all_sorted(row);
      for (const size_t count : {0U, 1U, 2U, 50U, 2000U}) {
        const size_t kept = std::min(count, all.size());
        const std::vector<int64_t> wanted(all.begin(),
                                          all.begin() + static_cast<std::ptrdiff_t>(kept));
        EXPECT_EQ(likeliest_tokens(row, count), wanted) << size << ' ' << values << ' ' << count;
      }
    }
  }
}

// The pool finds a few tokens among many without sorting all of them.
TEST(LikeliestTokens, ArePutIntoAPoolInTheirOrder) {
  const std::vector<float> row = row_of(1000, 300);
  const std::vector<int64_t> all = all_sorted(row);
  TokenPool pool(row);
  pool.keep_likeliest(20);
  EXPECT_EQ(pool.size(), 20U);
  EXPECT_EQ(pool.draw(0), all[0]);
  EXPECT_EQ(pool.draw(1 - 1e-16), all[19]);
}

}  // namespace
}  // namespace stretto::decoding
