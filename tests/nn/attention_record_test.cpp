#include "nn/attention_record.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "nn/attention.h"

namespace stretto::nn {
namespace {

TEST(AttentionRecord, HasTheRowsOfTheLastAttentionOfThisScopeAlone) {
  AttentionOptions options;
  options.d_model = 16;
  options.num_heads = 4;
  options.num_kv_heads = 2;
  const SelfAttention attention(Init(1, at::kCPU).child("attention"), options);
  const at::Tensor x = torch::randn({3, 16});
  PackedRows rows;
  rows.positions = at::arange(3, at::kLong);
  rows.offsets = {.values = at::tensor({0, 3}, at::kInt), .max_length = 3};
  AttentionRows record;
  {
    const AttentionRecordScope scope(record);
    attention->forward(torch::randn({3, 16}), rows, false, {});
    attention->forward(x, rows, false, {});
  }
  EXPECT_EQ(AttentionRecordScope::current(), nullptr);
  EXPECT_EQ(record.num_heads, 4);
  EXPECT_EQ(record.num_kv_heads, 2);
  const auto parts = attention->split(attention->project(x, rows.positions));
  EXPECT_TRUE(at::allclose(record.queries, parts[0]));
  EXPECT_TRUE(at::allclose(record.keys, parts[1]));
  EXPECT_TRUE(at::allclose(record.values, parts[2]));
}

}  // namespace
}  // namespace stretto::nn
