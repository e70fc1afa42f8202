#include "nn/lora.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "kernels/compute.h"
#include "kernels/gemm/packed_weights.h"
#include "nn/feed_forward.h"
#include "nn/linear.h"
#include "tests/kernels/gradcheck.h"

namespace stretto::nn {
namespace {

using stretto::testing::noise;

constexpr int64_t kIn = 6, kRank = 2;
const LoraOptions kLora{.rank = kRank, .alpha = 6, .maps = {"*map"}};

Init root(const LoraOptions& lora = kLora) {
  return Init(1, at::kCPU).with_lora(lora);
}

/// A map whose B is not zero.
Linear trained(const LinearOptions& options, int64_t out, const LoraOptions& lora = kLora) {
  Linear linear(root(lora).child("map"), kIn, out, options);
  const torch::NoGradGuard no_grad;
  linear->lora->b.copy_(noise(linear->lora->b.sizes(), 3));
  return linear;
}

/// x (W + alpha / rank B A)^T + b, part by part, in double.
at::Tensor plain(const Linear& linear, const at::Tensor& x, const std::vector<int64_t>& rows) {
  const auto wide = [](const at::Tensor& t) { return t.detach().to(at::kDouble); };
  at::Tensor weight = wide(linear->weight).clone();
  int64_t from = 0;
  for (size_t part = 0; part < rows.size(); ++part) {
    const auto a = wide(linear->lora->a).narrow(0, static_cast<int64_t>(part) * kRank, kRank);
    weight.narrow(0, from, rows[part]) +=
        3 * wide(linear->lora->b).narrow(0, from, rows[part]).matmul(a);
    from += rows[part];
  }
  at::Tensor y = wide(x).matmul(weight.t());
  return linear->bias.defined() ? y + wide(linear->bias) : y;
}

struct Case {
  LinearOptions options;
  int64_t out;
  std::vector<int64_t> rows;
};

const std::vector<Case> kCases{
    {{}, 4, {4}},
    {{.bias = false}, 4, {4}},
    {{.parts = 3}, 12, {4, 4, 4}},
    {{.part_rows = {6, 2, 2}}, 10, {6, 2, 2}},
};

TEST(Lora, StartsAsTheMapWithoutIt) {
  Linear with(root().child("map"), kIn, 4, LinearOptions{});
  Linear without(Init(1, at::kCPU).child("map"), kIn, 4, LinearOptions{});
  EXPECT_TRUE(at::equal(with->weight, without->weight)) << "no other number is drawn";
  const at::Tensor x = noise({5, kIn});
  EXPECT_TRUE(at::allclose(with->forward(x), without->forward(x), 0, 0));
  EXPECT_EQ(with->lora->b.abs().max().item<float>(), 0);
  const float bound = 1 / std::sqrt(static_cast<float>(kIn));
  EXPECT_LE(with->lora->a.abs().max().item<float>(), bound);
  EXPECT_GT(with->lora->a.abs().max().item<float>(), 0.5f * bound);
}

TEST(Lora, BelongsToTheMapsThatAPatternNamesAndHasItsNames) {
  Linear with(root().child("encoder").child("map"), kIn, 12, LinearOptions{.parts = 3});
  std::vector<std::string> names;
  for (const auto& item : with->named_parameters()) names.push_back(item.key());
  EXPECT_EQ(names, (std::vector<std::string>{"weight", "bias", "lora_a", "lora_b"}));
  EXPECT_EQ(with->lora->a.sizes(), (std::vector<int64_t>{3 * kRank, kIn}));
  EXPECT_EQ(with->lora->b.sizes(), (std::vector<int64_t>{12, kRank}));
  EXPECT_TRUE(at::equal(with->named_buffers()["lora_parts"],
                        torch::tensor({{4.f, 3.f}, {4.f, 3.f}, {4.f, 3.f}})));
  Linear other(root().child("encoder").child("other"), kIn, 12, LinearOptions{});
  EXPECT_EQ(other->lora, nullptr);
  Linear off(root({}).child("encoder").child("map"), kIn, 12, LinearOptions{});
  EXPECT_EQ(off->lora, nullptr);
  Linear meta(Init(1, at::kMeta).with_lora(kLora).child("map"), kIn, 12, LinearOptions{});
  EXPECT_TRUE(meta->lora->a.is_meta() && meta->lora->parts.is_meta());
}

TEST(Lora, AddsItsProductToEachPart) {
  for (const Case& c : kCases) {
    Linear linear = trained(c.options, c.out);
    const at::Tensor x = noise({5, kIn}), want = plain(linear, x, c.rows);
    EXPECT_TRUE(at::allclose(linear->forward(x).to(at::kDouble), want, 1e-4, 1e-5)) << c.out;
    {
      const torch::NoGradGuard no_grad;
      EXPECT_TRUE(at::allclose(linear->forward(x).to(at::kDouble), want, 1e-4, 1e-5)) << c.out;
    }
    linear->to(at::kDouble);
    const at::Tensor wide = x.to(at::kDouble);
    EXPECT_TRUE(at::allclose(linear->forward(wide), want, 1e-12, 1e-12)) << c.out;
    const torch::NoGradGuard no_grad;
    EXPECT_TRUE(at::allclose(linear->forward(wide), want, 1e-12, 1e-12)) << c.out;
  }
}

TEST(Lora, OfAMatrixIsInProductsAndInParts) {
  Linear linear = trained({.parts = 2}, 8);
  linear->to(at::kDouble);
  const at::Tensor x = noise({5, kIn}).to(at::kDouble), y = plain(linear, x, {4, 4});
  EXPECT_TRUE(at::allclose(linear->product(x) + linear->bias, y));
  EXPECT_TRUE(at::allclose(at::linear(x, linear->matrix(), linear->bias), y));
  EXPECT_TRUE(at::allclose(linear->rows(x, 0, 4), y.narrow(1, 0, 4)));
  EXPECT_TRUE(at::allclose(linear->rows(x, 4, 4), y.narrow(1, 4, 4)));
  linear->matrix().sum().backward();
  EXPECT_GT(linear->lora->a.grad().abs().max().item<double>(), 0);
}

TEST(Lora, HasTheGradientsOfItsFormula) {
  for (const Case& c : kCases) {
    Linear linear = trained(c.options, c.out);
    const bool biased = linear->bias.defined();
    std::vector<at::Tensor> inputs{noise({3, kIn}), linear->weight.detach(),
                                   linear->lora->a.detach(), linear->lora->b.detach()};
    if (biased) inputs.push_back(linear->bias.detach());
    for (const bool whole : {false, true}) {
      stretto::testing::expect_gradients(
          [&](const stretto::testing::Inputs& now) {
            linear->weight = now[1];
            linear->lora->a = now[2];
            linear->lora->b = now[3];
            if (biased) linear->bias = now[4];
            if (!whole) return linear->forward(now[0]);
            return at::linear(now[0], linear->matrix(), biased ? now[4] : at::Tensor());
          },
          inputs);
    }
  }
}

TEST(Lora, ComputesNoGradientOfAFrozenWeight) {
  Linear linear = trained({}, 4);
  linear->weight.set_requires_grad(false);
  linear->bias.set_requires_grad(false);
  linear->forward(noise({5, kIn})).sum().backward();
  EXPECT_FALSE(linear->weight.grad().defined());
  EXPECT_TRUE(linear->lora->a.grad().defined());
  EXPECT_TRUE(linear->lora->b.grad().defined());
}

TEST(Lora, WithoutGradientsHasTheBitsOfTheMergedMap) {
  for (const Case& c : kCases) {
    Linear linear = trained(c.options, c.out);
    const torch::NoGradGuard no_grad;
    Linear merged(Init(2, at::kCPU).child("map"), kIn, c.out, c.options);
    merged->weight.copy_(linear->lora->merged(linear->weight));
    if (merged->bias.defined()) merged->bias.copy_(linear->bias);
    const at::Tensor x = noise({5, kIn});
    EXPECT_TRUE(at::equal(linear->forward(x), merged->forward(x)));
    kernels::PackedWeights packed;
    const kernels::PackedWeightsScope scope(packed);
    EXPECT_TRUE(at::allclose(linear->forward(x), merged->forward(x), 1e-5, 1e-6));
    EXPECT_TRUE(at::equal(linear->forward(x), linear->forward(x)));
  }
}

TEST(Lora, IsMergedInFullPrecisionWhateverProductsAreRoundedTo) {
  for (const Case& c : kCases) {
    Linear linear = trained(c.options, c.out);
    const kernels::ComputeScope half(kernels::Compute::kBf16);
    const at::Tensor learning = linear->matrix().detach();
    const torch::NoGradGuard no_grad;
    EXPECT_TRUE(at::allclose(learning, linear->matrix(), 1e-6, 1e-6)) << c.out;
  }
}

TEST(Lora, DropsItsInputByTheRowsThatAScopeTells) {
  LoraOptions options = kLora;
  options.dropout = 0.5;
  Linear linear = trained({}, 4, options);
  const at::Tensor x = at::ones({200, kIn}), keys = at::arange(200, at::kLong);
  const at::Tensor whole = linear->forward(x);
  const auto dropped = [&](uint64_t key, const at::Tensor& row_keys, bool training = true) {
    const LoraDropoutScope scope({.training = training, .key = key, .row_keys = row_keys});
    return linear->forward(x).detach();
  };
  const at::Tensor once = dropped(1, keys);
  EXPECT_FALSE(at::allclose(once, whole));
  EXPECT_TRUE(at::equal(once, dropped(1, keys)));
  EXPECT_FALSE(at::equal(once, dropped(2, keys))) << "another update";
  // A product may round the last rows of a matrix otherwise than the first.
  EXPECT_TRUE(at::allclose(once.flip(0), dropped(1, keys.flip(0)), 1e-5, 1e-6))
      << "by sample and position";
  EXPECT_TRUE(at::equal(whole, dropped(1, keys, /*training=*/false)));
  EXPECT_TRUE(at::equal(whole, dropped(1, keys.narrow(0, 0, 7)))) << "rows of another side";
  EXPECT_TRUE(at::equal(whole, linear->forward(x))) << "the scope has ended";
  const at::Tensor base = at::linear(x, linear->weight, linear->bias);
  EXPECT_TRUE(at::allclose((once - base).mean(0), (whole - base).mean(0), 0.3, 0.5));
  {
    const LoraDropoutScope outer({.training = true, .key = 1, .row_keys = keys.narrow(0, 0, 3)});
    const LoraDropoutScope inner(LoraDropoutScope::of_rows(keys));
    EXPECT_TRUE(at::equal(once, linear->forward(x)));
  }
  EXPECT_FALSE(LoraDropoutScope::of_rows(keys).training);
}

TEST(Lora, IsInTheFeedForwardPart) {
  const LoraOptions all{.rank = 2, .maps = {"*"}};
  for (const char* activation : {"relu", "gelu", "swiglu"}) {
    FeedForward part(Init(1, at::kCPU).with_lora(all), 4, 8, activation);
    const at::Tensor x = noise({3, 4}), before = part->forward(x, {}).detach();
    const torch::NoGradGuard no_grad;
    part->up->lora->b.fill_(0.1);
    EXPECT_FALSE(at::allclose(part->forward(x, {}), before)) << activation;
    EXPECT_EQ(lora_of(*part)->rank, 2);
  }
  EXPECT_EQ(lora_of(*FeedForward(Init(1, at::kCPU), 4, 8, "relu")), nullptr);
}

}  // namespace
}  // namespace stretto::nn
