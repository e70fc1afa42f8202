#include "nn/compressed.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/lora_options.h"
#include "nn/norm.h"

namespace stretto::nn {
namespace {

struct Words : torch::nn::Module {
  Embedding table{nullptr};
  Linear map{nullptr};
  LayerNorm norm{nullptr};

  explicit Words(const Init& init) {
    table = register_module("table", Embedding(init.child("table"), 40, 16, /*pad=*/0));
    map = register_module("map", Linear(init.child("map"), 16, 24));
    norm = register_module("norm", LayerNorm(init.child("norm"), 24));
  }
};

std::shared_ptr<const kernels::QuantisedMatrix> rounded_to_codes(const at::Tensor& weight) {
  const at::NoGradGuard no_grad;
  const at::Tensor scales = weight.abs().amax(1, /*keepdim=*/true).clamp_min(1e-6) / 127;
  return std::make_shared<const kernels::QuantisedMatrix>(
      kernels::QuantisedWeights{.bits = 8,
                                .group = 0,
                                .codes = (weight / scales).round().to(at::kChar),
                                .scales = scales.detach()});
}

TEST(Compressed, AreMatricesOfMapsAndTables) {
  const auto words = std::make_shared<Words>(Init(1, at::kCPU));
  EXPECT_EQ(names_that_take_codes(*words),
            (std::vector<std::string>{"table.weight", "map.weight"}));
  EXPECT_TRUE(takes_codes(*words, "map.weight"));
  EXPECT_FALSE(takes_codes(*words, "map.bias"));
  EXPECT_FALSE(takes_codes(*words, "norm.weight"));
  EXPECT_FALSE(takes_codes(*words, "weight"));
}

TEST(Compressed, NoMapHasCodesBesideLora) {
  const LoraOptions lora{.rank = 2, .alpha = 4, .maps = {"*"}};
  const auto words = std::make_shared<Words>(Init(1, at::kCPU).with_lora(lora));
  ASSERT_NE(words->map->lora, nullptr);
  EXPECT_EQ(names_that_take_codes(*words), std::vector<std::string>{"table.weight"});
}

TEST(Compressed, AMapMultipliesItsCodes) {
  const at::NoGradGuard no_grad;
  const auto words = std::make_shared<Words>(Init(1, at::kCPU));
  const at::Tensor x = torch::randn({5, 16}), before = words->map->forward(x);
  const auto codes = rounded_to_codes(words->map->weight);
  set_compressed(*words, "map.weight", codes);

  const at::Tensor after = words->map->forward(x);
  EXPECT_TRUE(at::equal(after, kernels::quantised_linear(x, *codes, words->map->bias)));
  EXPECT_LT((after - before).norm().item<double>(), 0.03 * before.norm().item<double>());
  EXPECT_TRUE(at::equal(words->map->rows(x, 8, 10), after.narrow(1, 8, 10)));
  EXPECT_TRUE(at::equal(words->map->product(x), kernels::quantised_linear(x, *codes)));
  EXPECT_TRUE(at::equal(words->map->matrix(), codes->dense()));
  EXPECT_EQ(words->map->operations(), 2.0 * 16 * 24);
  EXPECT_FALSE(words->map->weight.requires_grad());
}

TEST(Compressed, ATableLooksUpItsCodes) {
  const at::NoGradGuard no_grad;
  const auto words = std::make_shared<Words>(Init(1, at::kCPU));
  const auto codes = rounded_to_codes(words->table->weight);
  set_compressed(*words, "table.weight", codes);
  const at::Tensor ids = torch::tensor({7, 0, 39}, at::kLong);
  EXPECT_TRUE(at::allclose(words->table->forward(ids, {}), codes->rows(ids) * 4));
}

TEST(Compressed, FreesTheMemoryOfTheNumbers) {
  const auto words = std::make_shared<Words>(Init(1, at::kCPU));
  const int64_t before = bytes_in_memory(*words);
  EXPECT_EQ(before, (40 * 16 + 24 * 16 + 24 + 24 + 24) * 4);
  const auto codes = rounded_to_codes(words->table->weight);
  set_compressed(*words, "table.weight", codes);
  EXPECT_EQ(bytes_in_memory(*words), before - 40 * 16 * 4 + codes->bytes());
}

TEST(Compressed, RefusesOtherShapesAndOtherParameters) {
  const auto words = std::make_shared<Words>(Init(1, at::kCPU));
  const auto codes = rounded_to_codes(words->table->weight);
  EXPECT_THROW(set_compressed(*words, "map.weight", codes), c10::Error);
  EXPECT_THROW(set_compressed(*words, "norm.weight", codes), c10::Error);
  EXPECT_THROW(set_compressed(*words, "table.weight", nullptr), c10::Error);
}

}  // namespace
}  // namespace stretto::nn
