#include "nn/adapter.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "nn/lora.h"
#include "tests/kernels/gradcheck.h"

namespace stretto::nn {
namespace {

using stretto::testing::noise;

constexpr int64_t kModelWidth = 6, kAdapterWidth = 4;
const std::vector<std::string> kActivations{"gelu", "gelu_tanh", "relu", "silu"};

Init adapted_root(const std::string& activation = "gelu", uint64_t seed = 1) {
  return Init(seed, at::kCPU)
      .with_adapter({.dim = kAdapterWidth, .activation = activation, .parts = {"*ffn*"}});
}

struct ResidualPlace : torch::nn::Module {
  explicit ResidualPlace(const Init& init) : adapter(make_adapter(*this, init, kModelWidth)) {}
  Adapter adapter;
};

/// An adapter all of whose tensors are other than at first.
Adapter trained_adapter(const std::string& activation) {
  Adapter adapter = ResidualPlace(adapted_root(activation).child("ffn_residual")).adapter;
  const torch::NoGradGuard no_grad;
  uint64_t seed = 3;
  for (at::Tensor& tensor : adapter->parameters()) tensor.copy_(noise(tensor.sizes(), seed++));
  return adapter;
}

at::Tensor plain_activation(const std::string& name, const at::Tensor& x) {
  if (name == "relu") return at::relu(x);
  if (name == "silu") return at::silu(x);
  return at::gelu(x, name == "gelu" ? "none" : "tanh");
}

/// x + W_up activation(W_down x + b_down) + b_up, in double.
at::Tensor plain_adapter(const std::string& activation, const AdapterImpl& adapter,
                         const at::Tensor& x) {
  const auto wide = [](const at::Tensor& t) { return t.detach().to(at::kDouble); };
  const at::Tensor inner =
      wide(x).matmul(wide(adapter.down->weight).t()) + wide(adapter.down->bias);
  return wide(x) + plain_activation(activation, inner).matmul(wide(adapter.up->weight).t()) +
         wide(adapter.up->bias);
}

TEST(Adapter, AddsWhatItsBottleneckMakesOfTheRows) {
  for (const auto& activation : kActivations) {
    SCOPED_TRACE(activation);
    Adapter adapter = trained_adapter(activation);
    const at::Tensor x = noise({5, kModelWidth}), want = plain_adapter(activation, *adapter, x);
    EXPECT_TRUE(at::allclose(adapter->forward(x).to(at::kDouble), want, 1e-4, 1e-5));
    EXPECT_GT((want - x).abs().max().item<double>(), 0.1) << "it changes something";
    {
      const torch::NoGradGuard no_grad;
      EXPECT_TRUE(at::allclose(adapter->forward(x).to(at::kDouble), want, 1e-4, 1e-5));
    }
    adapter->to(at::kDouble);
    EXPECT_TRUE(at::allclose(adapter->forward(x.to(at::kDouble)), want, 1e-12, 1e-12));
  }
}

TEST(Adapter, HasTheGradientsOfItsFormula) {
  for (const auto& activation : kActivations) {
    SCOPED_TRACE(activation);
    Adapter adapter = trained_adapter(activation);
    std::vector<at::Tensor> inputs{noise({3, kModelWidth})};
    for (const at::Tensor& tensor : adapter->parameters()) inputs.push_back(tensor.detach());
    stretto::testing::expect_gradients(
        [&](const stretto::testing::Inputs& now) {
          adapter->down->weight = now[1];
          adapter->down->bias = now[2];
          adapter->up->weight = now[3];
          adapter->up->bias = now[4];
          return adapter->forward(now[0]);
        },
        inputs);
  }
}

TEST(Adapter, StartsAsTheIdentityWithSmallWeightsBelow) {
  const ResidualPlace place(adapted_root().child("ffn_residual"));
  const at::Tensor x = noise({5, kModelWidth});
  EXPECT_TRUE(at::equal(place.adapter->forward(x), x));
  EXPECT_EQ(place.adapter->up->weight.abs().max().item<float>(), 0);
  EXPECT_EQ(place.adapter->up->bias.abs().max().item<float>(), 0);
  EXPECT_EQ(place.adapter->down->bias.abs().max().item<float>(), 0);
  const AdapterOptions wide{.dim = 64};
  const Adapter large = ResidualPlace(Init(1, at::kCPU).with_adapter(wide).child("x")).adapter;
  EXPECT_LE(large->down->weight.abs().max().item<float>(), 0.02f) << "drawn again beyond 2 std";
  EXPECT_NEAR(large->down->weight.std().item<float>(), 0.0088f, 0.001f) << "of a cut normal";
}

TEST(Adapter, StartsByAnInitialiserBelowAndAlwaysAsZerosAbove) {
  const Init init = adapted_root().with_rules(
      {{.pattern = "*", .distribution = Distribution::kConstant, .number = 0.5}});
  const ResidualPlace place(init.child("ffn_residual"));
  EXPECT_EQ(place.adapter->down->weight.min().item<float>(), 0.5f);
  EXPECT_EQ(place.adapter->up->weight.abs().max().item<float>(), 0);
  EXPECT_EQ(place.adapter->up->bias.abs().max().item<float>(), 0);
}

TEST(Adapter, BelongsToTheConnectionsThatAPatternNamesAndHasItsNames) {
  const Init layer = adapted_root().child("encoder").child("layers").child("0");
  const ResidualPlace with(layer.child("ffn_residual")), without(layer.child("self_residual"));
  std::vector<std::string> names;
  for (const auto& item : with.named_parameters()) names.push_back(item.key());
  EXPECT_EQ(names, (std::vector<std::string>{"adapter.down.weight", "adapter.down.bias",
                                             "adapter.up.weight", "adapter.up.bias"}));
  for (const auto& name : names) EXPECT_TRUE(is_adapter("encoder.layers.0.ffn_residual." + name));
  EXPECT_FALSE(is_adapter("encoder.layers.0.ffn.down.weight"));
  EXPECT_EQ(with.adapter->down->weight.sizes(), (std::vector<int64_t>{kAdapterWidth, kModelWidth}));
  EXPECT_EQ(with.adapter->up->weight.sizes(), (std::vector<int64_t>{kModelWidth, kAdapterWidth}));
  EXPECT_FALSE(without.adapter);
  EXPECT_TRUE(without.parameters().empty());
  EXPECT_EQ(adapter_of(with)->dim, kAdapterWidth);
  EXPECT_EQ(adapter_of(without), nullptr);
  EXPECT_FALSE(ResidualPlace(Init(1, at::kCPU).with_adapter({}).child("ffn_residual")).adapter);
}

TEST(Adapter, HasNoLoraOfItsOwn) {
  const LoraOptions all{.rank = 2, .maps = {"*"}};
  const ResidualPlace place(adapted_root().with_lora(all).child("ffn_residual"));
  EXPECT_EQ(lora_of(place), nullptr);
}

}  // namespace
}  // namespace stretto::nn
