#include "nn/relative_keys.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "nn/attention.h"

namespace stretto::nn {
namespace {

constexpr int64_t kHeads = 4, kWidth = 6, kWide = kHeads * kWidth;

RelativeKeys keys_of(int64_t max_distance, bool causal) {
  return RelativeKeys(Init(1, at::kCPU).child("relative_keys"),
                      RelativeKeysOptions{.num_heads = kHeads,
                                          .head_width = kWidth,
                                          .max_distance = max_distance,
                                          .causal = causal});
}

TEST(RelativeKeys, HaveOneVectorForEachDistanceThatAQueryMaySee) {
  EXPECT_EQ(keys_of(5, false)->weight.sizes(), (std::vector<int64_t>{11, kWidth}));
  EXPECT_EQ(keys_of(5, true)->weight.sizes(), (std::vector<int64_t>{6, kWidth}));
  const double bound = std::sqrt(6.0 / (11 + kWidth));
  EXPECT_LE(keys_of(5, false)->weight.abs().max().item<double>(), bound * (1 + 1e-6));
  EXPECT_THROW(keys_of(0, false), c10::Error);
}

TEST(RelativeKeys, GiveTheScaledProductOfEachQueryWithEachVector) {
  torch::manual_seed(3);
  for (const auto type : {at::kFloat, at::kDouble}) {
    RelativeKeys keys = keys_of(2, false);
    keys->to(type);
    const at::Tensor queries = torch::randn({7, kWide}, type);
    const kernels::DistanceBias bias = keys->forward(queries);
    EXPECT_EQ(bias.zero, 2);
    ASSERT_EQ(bias.table.sizes(), (std::vector<int64_t>{7, kHeads, 5}));
    EXPECT_TRUE(bias.is_of_queries());
    for (int64_t n = 0; n < 7; ++n)
      for (int64_t head = 0; head < kHeads; ++head)
        for (int64_t d = -2; d <= 2; ++d) {
          double product = 0;
          for (int64_t c = 0; c < kWidth; ++c)
            product += queries[n][head * kWidth + c].item<double>() *
                       keys->weight[d + 2][c].item<double>();
          EXPECT_NEAR(bias.table[n][head][d + 2].item<double>(),
                      product / std::sqrt(double(kWidth)), 1e-5);
        }
  }
}

/// Equation 4 of the paper with a vector for each pair: softmax(q (k + a)^T / sqrt(W)) v.
at::Tensor plain_attention(const SelfAttention& attention, const at::Tensor& x, bool causal) {
  const int64_t length = x.size(0), k = attention->options.max_distance;
  const auto parts = attention->split(attention->qkv->forward(x));
  const auto heads = [&](const at::Tensor& rows) {
    return rows.reshape({length, rows.size(1) / kWidth, kWidth})
        .repeat_interleave(kWide / rows.size(1), 1);
  };
  const at::Tensor q = heads(parts[0]), keys = heads(parts[1]), values = heads(parts[2]);
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < length; ++i) {
    std::vector<at::Tensor> scores, seen;
    for (int64_t j = 0; j < (causal ? i + 1 : length); ++j) {
      const at::Tensor vector = attention->relative_keys->weight[std::clamp(j - i, -k, k) + k];
      scores.push_back((q[i] * (keys[j] + vector)).sum(1) / std::sqrt(double(kWidth)));
      seen.push_back(values[j]);
    }
    const at::Tensor weights = at::softmax(at::stack(scores), 0).unsqueeze(2);  // [keys, H, 1]
    rows.push_back((weights * at::stack(seen)).sum(0).flatten());
  }
  return attention->out->forward(at::stack(rows));
}

SelfAttention attention_of(int64_t max_distance, int64_t num_kv_heads, bool causal) {
  SelfAttention attention(Init(1, at::kCPU).child("self_attention"),
                          AttentionOptions{.d_model = kWide,
                                           .num_heads = kHeads,
                                           .num_kv_heads = num_kv_heads,
                                           .max_distance = max_distance,
                                           .causal = causal});
  attention->to(at::kDouble);
  return attention;
}

PackedRows one_sequence(int64_t length) {
  PackedRows rows;
  rows.positions = at::arange(length, at::kLong);
  rows.offsets = {.values = at::tensor({int64_t{0}, length}, at::kInt), .max_length = length};
  return rows;
}

TEST(RelativeKeys, AddAVectorToEachKeyOfAttention) {
  torch::manual_seed(4);
  constexpr int64_t kLength = 9;
  for (const int64_t num_kv_heads : {0, 1, 2})
    for (const int64_t max_distance : {1, 3, 20})
      for (const bool causal : {false, true}) {
        const auto attention = attention_of(max_distance, num_kv_heads, causal);
        const at::Tensor x =
            torch::randn({kLength, kWide}, at::dtype(at::kDouble).requires_grad(true));
        const at::Tensor got = attention->forward(x, one_sequence(kLength), causal, {});
        const at::Tensor want = plain_attention(attention, x, causal);
        EXPECT_TRUE(at::allclose(got, want, 1e-9, 1e-11));
        std::vector<at::Tensor> inputs = attention->parameters();
        inputs.push_back(x);
        const at::Tensor slope = torch::randn({kLength, kWide}, at::kDouble);
        const auto ours = torch::autograd::grad({got}, inputs, {slope});
        const auto theirs = torch::autograd::grad({want}, inputs, {slope});
        for (size_t i = 0; i < ours.size(); ++i)
          EXPECT_TRUE(at::allclose(ours[i], theirs[i], 1e-9, 1e-10))
              << i << ' ' << num_kv_heads << ' ' << max_distance << ' ' << causal;
      }
}

TEST(RelativeKeys, OfDistancesBeyondTheLastShareItsVector) {
  torch::manual_seed(5);
  const auto near = attention_of(2, 0, false), far = attention_of(8, 0, false);
  {
    const torch::NoGradGuard no_grad;
    for (const auto& item : near->named_parameters(true)) {
      if (item.key() != "relative_keys.weight")
        far->named_parameters(true)[item.key()].copy_(item.value());
    }
    for (int64_t d = -8; d <= 8; ++d) {
      far->relative_keys->weight[d + 8].copy_(
          near->relative_keys->weight[std::clamp<int64_t>(d, -2, 2) + 2]);
    }
  }
  const at::Tensor x = torch::randn({9, kWide}, at::kDouble);
  EXPECT_TRUE(at::allclose(near->forward(x, one_sequence(9), false, {}),
                           far->forward(x, one_sequence(9), false, {}), 1e-10, 1e-12));
}

}  // namespace
}  // namespace stretto::nn
