#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/cpu/table.h"

namespace stretto::kernels {
namespace {

/// The logarithm of the sum of a query that sees two equal keys, whose score is `score`.
float log_sum_of(float score, float scale) {
  const std::vector<float> key{1, 0, 0, 0, 1, 0, 0, 0}, query{score, 0, 0, 0};
  std::vector<float> out(4);
  float log_sum = 0;
  const cpu::AttentionItem item{.q = query.data(),
                                .k = key.data(),
                                .v = key.data(),
                                .q_stride = 4,
                                .kv_stride = 4,
                                .queries = 1,
                                .keys = 2,
                                .width = 4,
                                .scale = scale,
                                .causal = false,
                                .first_element = 0,
                                .drop = {.key = 1, .row_keys = nullptr, .threshold = 0, .scale = 1},
                                .log_sum = &log_sum,
                                .compute = {}};
  cpu::table().attention(item, out.data(), 4);
  return log_sum;
}

// Runs go on with the bits they began with: a compiler that fused both operations where it likes
// would move those of models whose scale is no power of two.
TEST(AttentionLogSum, RoundsTheScaledScoreBeforeItAdds) {
  const float scale = 1.0f / std::sqrt(12.0f), ends = std::log(2.0f);
  int64_t fused_would_differ = 0;
  for (int i = 1; i < 1000; ++i) {
    const float score = static_cast<float>(i) * 0.0137f;
    const volatile float scaled = score * scale;
    EXPECT_EQ(log_sum_of(score, scale), scaled + ends) << score;
    fused_would_differ += std::fma(score, scale, ends) != scaled + ends;
  }
  EXPECT_GT(fused_would_differ, 50) << "the test is stale";
}

}  // namespace
}  // namespace stretto::kernels
