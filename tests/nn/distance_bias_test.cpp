#include "nn/distance_bias.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <vector>

#include "nn/attention.h"

namespace stretto::nn {
namespace {

TEST(AlibiSlopes, OfAPowerOfTwoAreAGeometricSeries) {
  // Section 3 of the paper: 8 heads have 1/2^1 … 1/2^8, 16 heads 1/2^0.5, 1/2^1, …
  const auto eight = alibi_slopes(8), sixteen = alibi_slopes(16);
  for (size_t i = 0; i < 8; ++i) EXPECT_DOUBLE_EQ(eight[i], std::pow(2.0, -double(i + 1)));
  for (size_t i = 0; i < 16; ++i) EXPECT_DOUBLE_EQ(sixteen[i], std::pow(2.0, -0.5 * double(i + 1)));
  EXPECT_EQ(alibi_slopes(1), std::vector<double>{1.0 / 256});
}

TEST(AlibiSlopes, OfOtherNumbersTakeThoseBetween) {
  // get_slopes(6) and get_slopes(12) of the authors' program.
  const std::vector<double> six{0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125};
  ASSERT_EQ(alibi_slopes(6).size(), 6u);
  for (size_t i = 0; i < 6; ++i) EXPECT_DOUBLE_EQ(alibi_slopes(6)[i], six[i]);
  const auto twelve = alibi_slopes(12);
  ASSERT_EQ(twelve.size(), 12u);
  EXPECT_DOUBLE_EQ(twelve[7], 1.0 / 256);
  const std::vector<double> last{-0.5, -1.5, -2.5, -3.5};
  for (size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(twelve[8 + i], std::exp2(last[i]));
}

/// Where transformers 4.57.6 has another bucket than one distance before, from -300 to 300
/// (T5Attention._relative_position_bucket with 32 buckets and a maximum of 128).
struct BucketChange {
  int64_t distance, bucket;
};
const std::vector<BucketChange> kBothWays{
    {-300, 15}, {-90, 14}, {-63, 13}, {-45, 12}, {-31, 11}, {-22, 10}, {-15, 9}, {-11, 8},
    {-7, 7},    {-6, 6},   {-5, 5},   {-4, 4},   {-3, 3},   {-2, 2},   {-1, 1},  {0, 0},
    {1, 17},    {2, 18},   {3, 19},   {4, 20},   {5, 21},   {6, 22},   {7, 23},  {8, 24},
    {12, 25},   {16, 26},  {23, 27},  {32, 28},  {46, 29},  {64, 30},  {91, 31}};
const std::vector<BucketChange> kCausal{
    {-300, 31}, {-112, 30}, {-98, 29}, {-86, 28}, {-76, 27}, {-66, 26}, {-58, 25}, {-51, 24},
    {-45, 23},  {-39, 22},  {-34, 21}, {-30, 20}, {-26, 19}, {-23, 18}, {-20, 17}, {-18, 16},
    {-15, 15},  {-14, 14},  {-13, 13}, {-12, 12}, {-11, 11}, {-10, 10}, {-9, 9},   {-8, 8},
    {-7, 7},    {-6, 6},    {-5, 5},   {-4, 4},   {-3, 3},   {-2, 2},   {-1, 1},   {0, 0}};

TEST(T5Buckets, AreThoseOfTransformersForEveryDistance) {
  for (const bool causal : {false, true}) {
    const auto& changes = causal ? kCausal : kBothWays;
    size_t at = 0;
    for (int64_t d = -300; d <= 300; ++d) {
      if (at + 1 < changes.size() && changes[at + 1].distance == d) ++at;
      ASSERT_EQ(t5_bucket(d, causal), changes[at].bucket) << d << ' ' << causal;
    }
    EXPECT_EQ(at + 1, changes.size());
  }
}

DistanceBias bias_of_kind(const char* kind, bool causal, int64_t heads = 4) {
  return DistanceBias(Init(1, at::kCPU).child("distance_bias"),
                      DistanceBiasOptions{.kind = kind, .num_heads = heads, .causal = causal}, 16);
}

TEST(DistanceBias, OfAlibiFallsWithTheDistanceAndLearnsNothing) {
  for (const auto type : {at::kFloat, at::kDouble})
    for (const bool causal : {false, true}) {
      const auto bias = bias_of_kind("alibi", causal);
      EXPECT_TRUE(bias->parameters().empty());
      const kernels::DistanceBias table = bias->forward(7, at::empty({1}, type));
      EXPECT_EQ(table.table.sizes(), (std::vector<int64_t>{4, causal ? 7 : 13}));
      EXPECT_EQ(table.table.scalar_type(), type);
      for (int64_t head = 0; head < 4; ++head)
        for (int64_t d = -6; d <= (causal ? 0 : 6); ++d)
          EXPECT_EQ(table.table[head][table.zero + d].item<double>(),
                    -std::exp2(-2.0 * double(head + 1)) * std::abs(double(d)));
    }
}

TEST(DistanceBias, OfT5LooksUpOneNumberForEachBucketAndHead) {
  for (const bool causal : {false, true}) {
    const auto bias = bias_of_kind("t5", causal);
    const kernels::DistanceBias table = bias->forward(200, bias->weight);
    for (int64_t head = 0; head < 4; ++head)
      for (int64_t d = -199; d <= (causal ? 0 : 199); ++d)
        EXPECT_EQ(table.table[head][table.zero + d].item<float>(),
                  bias->weight[t5_bucket(d, causal)][head].item<float>());
    // Each bucket's gradient is the number of its distances.
    table.table.sum().backward();
    for (int64_t bucket = 0; bucket < kT5Buckets; ++bucket) {
      int64_t distances = 0;
      for (int64_t d = -199; d <= (causal ? 0 : 199); ++d)
        distances += t5_bucket(d, causal) == bucket ? 1 : 0;
      EXPECT_EQ(bias->weight.grad()[bucket][2].item<float>(), float(distances)) << bucket;
    }
  }
}

TEST(DistanceBias, OfALongerTableIsTheSameForShorterSequences) {
  for (const char* kind : {"alibi", "t5"}) {
    const auto bias = bias_of_kind(kind, false, 6);
    const auto few = bias->forward(5, at::empty({1})), many = bias->forward(90, at::empty({1}));
    EXPECT_TRUE(at::equal(few.table, many.table.slice(1, many.zero - 4, many.zero + 5))) << kind;
  }
}

TEST(SelfAttention, OfFewerHeadsOfKeysStartsEachPartInsideItsOwnBound) {
  const SelfAttention attention(Init(1, at::kCPU).child("self_attention"),
                                AttentionOptions{.d_model = 96, .num_heads = 8, .num_kv_heads = 2});
  EXPECT_EQ(attention->qkv->weight.sizes(), (std::vector<int64_t>{96 + 2 * 24, 96}));
  EXPECT_EQ(attention->qkv->bias.sizes(), (std::vector<int64_t>{96 + 2 * 24}));
  const auto parts = attention->qkv->weight.split_with_sizes({96, 24, 24});
  for (size_t i = 0; i < 3; ++i) {
    const double bound = std::sqrt(0.5) * std::sqrt(6.0 / (96 + (i == 0 ? 96 : 24)));
    EXPECT_LE(parts[i].abs().max().item<double>(), bound * (1 + 1e-6)) << i;
    EXPECT_GT(parts[i].abs().max().item<double>(), 0.98 * bound) << i;
  }
  EXPECT_FALSE(at::equal(parts[1], parts[2]));
  const auto rows = attention->split(at::arange(2 * 144).view({2, 144}));
  EXPECT_EQ(rows[1][0][0].item<int64_t>(), 96);
  EXPECT_EQ(rows[2][1][0].item<int64_t>(), 144 + 120);
}

}  // namespace
}  // namespace stretto::nn
