#include "nn/merged_matrices.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "nn/attention.h"
#include "nn/linear.h"
#include "nn/lora_options.h"

namespace stretto::nn {
namespace {

struct Maps : torch::nn::Module {
  SelfAttention attention{nullptr};
  Linear single{nullptr}, gates{nullptr};

  explicit Maps(const Init& init) {
    attention = register_module(
        "attention",
        SelfAttention(init.child("attention"),
                      AttentionOptions{.d_model = 8, .num_heads = 4, .num_kv_heads = 2}));
    single = register_module("single", Linear(init.child("single"), 8, 6));
    gates = register_module("gates", Linear(init.child("gates"), 8, 12, LinearOptions{.parts = 4}));
  }
};

using Rows = std::vector<int64_t>;

Rows rows_of(const torch::nn::Module& model, const at::Tensor& matrix) {
  for (const auto& merged : merged_matrices(model)) {
    if (merged.matrix.is_same(matrix)) return merged.rows;
  }
  return {};
}

TEST(MergedMatrices, AreThoseOfQueriesKeysAndValuesAndOfGates) {
  const auto maps = std::make_shared<Maps>(Init(1, at::kCPU));
  EXPECT_EQ(merged_matrices(*maps).size(), 2U);
  EXPECT_EQ(rows_of(*maps, maps->attention->qkv->weight), (Rows{8, 4, 4}));
  EXPECT_EQ(rows_of(*maps, maps->gates->weight), (Rows{3, 3, 3, 3}));
}

TEST(MergedMatrices, HaveThePartsOfLora) {
  const LoraOptions lora{.rank = 2, .alpha = 4, .maps = {"*"}};
  const auto maps = std::make_shared<Maps>(Init(1, at::kCPU).with_lora(lora));
  EXPECT_EQ(rows_of(*maps, maps->attention->qkv->lora->a), (Rows{2, 2, 2}));
  EXPECT_EQ(rows_of(*maps, maps->attention->qkv->lora->b), (Rows{8, 4, 4}));
  EXPECT_EQ(rows_of(*maps, maps->single->lora->a), Rows{});
}

}  // namespace
}  // namespace stretto::nn
