#include "models/images/vit.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/schema.h"
#include "models/images/image_conflicts.h"
#include "models/registry.h"
#include "tests/models/images/image_cases.h"

namespace stretto::models {
namespace {

using testing::images::expect_same, testing::images::image_model, testing::images::meta_model,
    testing::images::pictures, testing::images::shake, testing::images::tensors_of;

static_assert(config::lists_every_member<VitOptions>);

VitOptions small_vit(const std::string& pooling = "class_token") {
  VitOptions options;
  options.preset = "none";
  options.num_layers = 2;
  options.d_model = 8;
  options.num_heads = 2;
  options.ffn_dim = 12;
  options.patch_size = 2;
  options.image_size = 6;
  options.pooling = pooling;
  return options;
}

VitOptions preset(const std::string& name) {
  VitOptions options;
  options.preset = name;
  return options;
}

using Tensors = std::map<std::string, at::Tensor>;

/// Of libtorch's operators, on [B, T, D], and by names alone.
at::Tensor plain_vit(const Tensors& tensors, const VitOptions& options, const at::Tensor& pixels) {
  const auto linear = [&](const std::string& name, const at::Tensor& x) {
    return at::linear(x, tensors.at(name + ".weight"), tensors.at(name + ".bias"));
  };
  const auto norm = [&](const std::string& name, const at::Tensor& x) {
    return at::layer_norm(x, {x.size(-1)}, tensors.at(name + ".weight"), tensors.at(name + ".bias"),
                          options.norm_epsilon);
  };
  const bool has_token = options.pooling == "class_token";
  at::Tensor x = at::conv2d(pixels, tensors.at("patches.weight"), tensors.at("patches.bias"),
                            options.patch_size)
                     .flatten(2)
                     .transpose(1, 2);
  const int64_t b = x.size(0), d = x.size(2), heads = options.num_heads;
  if (has_token) x = at::cat({tensors.at("class_token").expand({b, 1, d}), x}, 1);
  x = x + tensors.at("positions");
  const int64_t t = x.size(1);
  for (int64_t i = 0; i < options.num_layers; ++i) {
    const std::string at_layer = "layers." + std::to_string(i) + ".";
    const auto qkv =
        linear(at_layer + "self_attention.qkv", norm(at_layer + "self_residual.norm", x))
            .view({b, t, 3, heads, d / heads})
            .permute({2, 0, 3, 1, 4});
    const at::Tensor scores =
        qkv[0].matmul(qkv[1].transpose(-1, -2)) / std::sqrt(static_cast<double>(d / heads));
    const at::Tensor attended =
        scores.softmax(-1).matmul(qkv[2]).transpose(1, 2).reshape({b, t, d});
    x = x + linear(at_layer + "self_attention.out", attended);
    const at::Tensor inner =
        at::gelu(linear(at_layer + "ffn.up", norm(at_layer + "ffn_residual.norm", x)));
    x = x + linear(at_layer + "ffn.down", inner);
  }
  x = norm("final_norm", x);
  return linear("head", has_token ? x.select(1, 0) : x.mean(1));
}

TEST(Vit, IsThePlainNetwork) {
  for (const char* pooling : {"class_token", "mean"}) {
    SCOPED_TRACE(pooling);
    const VitOptions options = small_vit(pooling);
    const auto model = image_model(options);
    shake(*model);
    const at::Tensor x = pictures(3, 6);
    const auto tensors = tensors_of(*model);
    const auto want = testing::images::run(*model, [&] { return plain_vit(tensors, options, x); });
    const auto got = testing::images::run(
        *model, [&] { return model->forward({.pixels = x}, {.training = true}); });
    expect_same(got, want);
  }
}

TEST(Vit, HasAsManyParametersAsPublished) {
  // torchvision (base, large) and timm (tiny, small).
  EXPECT_EQ(num_parameters(*meta_model(preset("vit_tiny_patch16_224"))), 5717416);
  EXPECT_EQ(num_parameters(*meta_model(preset("vit_small_patch16_224"))), 22050664);
  EXPECT_EQ(num_parameters(*meta_model(preset("vit_base_patch16_224"))), 86567656);
  EXPECT_EQ(num_parameters(*meta_model(preset("vit_base_patch32_224"))), 88224232);
  EXPECT_EQ(num_parameters(*meta_model(preset("vit_large_patch16_224"))), 304326632);
  EXPECT_EQ(num_parameters(*meta_model(preset("vit_large_patch32_224"))), 306535400);
}

TEST(Vit, CostsItsProducts) {
  VitOptions options = preset("vit_base_patch16_224");
  options.pooling = "mean";
  const double rows = 196, d = 768, layers = 12;
  const double of_layers = rows * layers * (12 * d * d + 2 * d * rows);
  EXPECT_DOUBLE_EQ(meta_model(options)->operations(224, 224),
                   2 * (rows * d * d + of_layers + d * 1000));
  // torchvision's table has 17.56 without the sums of values; the class token spares most of the
  // last layer.
  const double all = meta_model(preset("vit_base_patch16_224"))->operations(224, 224) / 2e9;
  EXPECT_GT(all, 16.5);
  EXPECT_LT(all, 17.6);
}

TEST(Vit, StartsAsThePapersCode) {
  const auto model = image_model(preset("vit_tiny_patch4_32"), at::kFloat);
  const auto tensors = tensors_of(*model);
  const auto zero = [&](const std::string& name) {
    return tensors.at(name).count_nonzero().item<int64_t>() == 0;
  };
  EXPECT_TRUE(zero("class_token") && zero("head.weight") && zero("head.bias") &&
              zero("patches.bias") && zero("layers.3.ffn.up.bias"));
  EXPECT_NEAR(tensors.at("positions").std().item<double>(), 0.02, 1e-3);
  EXPECT_NEAR(tensors.at("patches.weight").std().item<double>(), std::sqrt(1.0 / 48), 4e-3);
  EXPECT_NEAR(tensors.at("layers.5.ffn.up.weight").abs().max().item<double>(),
              std::sqrt(6.0 / (192 + 768)), 1e-4);
  EXPECT_NEAR(tensors.at("layers.5.self_attention.out.weight").abs().max().item<double>(),
              std::sqrt(6.0 / (2 * 192)), 1e-4);
  // As one matrix of torch.nn.MultiheadAttention, [3 D, D].
  EXPECT_NEAR(tensors.at("layers.5.self_attention.qkv.weight").abs().max().item<double>(),
              std::sqrt(6.0 / (4 * 192)), 1e-4);
}

TEST(Vit, EvaluatesAPictureAloneAsInABatch) {
  const auto model = image_model(preset("vit_tiny_patch4_32"), at::kFloat);
  shake(*model);
  const at::Tensor x = pictures(5, 32, at::kFloat);
  const at::NoGradGuard no_grad;
  const at::Tensor together = model->forward({.pixels = x}, {});
  for (int64_t i = 0; i < x.size(0); ++i) {
    EXPECT_TRUE(at::allclose(model->forward({.pixels = x.narrow(0, i, 1)}, {}),
                             together.narrow(0, i, 1), 1e-4, 1e-5))
        << i;
  }
}

TEST(Vit, DropsTheSameInAnyCutOfABatch) {
  VitOptions options = small_vit();
  options.dropout = options.attention_dropout = options.activation_dropout = 0.2;
  options.drop_path = 0.5;
  const auto model = image_model(options);
  shake(*model);
  const int64_t rows = model->rows_per_sample(6, 6);
  EXPECT_EQ(rows, 10);
  const at::Tensor x = pictures(4, 6);
  const ForwardContext context{.training = true, .dropout_key = 77};
  const at::Tensor together = model->forward(
      {.pixels = x,
       .row_keys = image_row_keys(std::vector<int64_t>{3, 11, 4, 900}, rows, at::kCPU)},
      context);
  const at::Tensor behind =
      model->forward({.pixels = x.narrow(0, 2, 2),
                      .row_keys = image_row_keys(std::vector<int64_t>{4, 900}, rows, at::kCPU)},
                     context);
  EXPECT_TRUE(at::allclose(together.narrow(0, 2, 2), behind));
  EXPECT_FALSE(at::allclose(together, model->forward({.pixels = x}, {})));
}

TEST(Vit, ReadsOtherSizesWithInterpolatedPositions) {
  const auto model = image_model(small_vit("mean"));
  shake(*model);
  const at::Tensor x = pictures(2, 6);
  {
    const at::NoGradGuard no_grad;
    const at::Tensor positions = tensors_of(*model).at("positions");
    positions.copy_(positions.slice(0, 0, 1).clone().expand({9, 8}));
  }
  // Positions that are alike stay so in any size. A picture of twice the size that has each patch
  // of x four times has four equal rows for each row of x, which attention sees as one.
  const at::Tensor patches = x.view({2, 3, 3, 2, 3, 2});
  const at::Tensor twice = at::stack({patches, patches}, 3);  // rows of patches
  const at::Tensor large = at::stack({twice, twice}, 6).reshape({2, 3, 12, 12});
  EXPECT_TRUE(at::allclose(model->forward({.pixels = large}, {}), model->forward({.pixels = x}, {}),
                           1e-9, 1e-9));
  EXPECT_THROW(model->forward({.pixels = pictures(1, 7)}, {}), Error);
}

TEST(Vit, KeepsThePositionOfTheClassTokenInOtherSizes) {
  const VitOptions options = small_vit();
  const auto model = image_model(options);
  shake(*model);
  auto tensors = tensors_of(*model);
  const at::NoGradGuard no_grad;
  // Patches of a row have one position; columns are then all alike in any size.
  at::Tensor positions = tensors.at("positions");  // [1 + 9, D]
  const at::Tensor of_rows = positions.slice(0, 1, 4).clone();
  positions.slice(0, 1).copy_(of_rows.repeat_interleave(3, 0));
  // Two columns: of one, PyTorch 2.11 makes four equal rows.
  const at::Tensor two = of_rows.t().reshape({1, 8, 3, 1}).repeat({1, 1, 1, 2});
  const at::Tensor four = at::_upsample_bicubic2d_aa(two, {4, 2}, false).select(3, 0);
  tensors["positions"] =
      at::cat({positions.slice(0, 0, 1), four.reshape({8, 4}).t().repeat_interleave(2, 0)});
  const at::Tensor x = testing::images::noise({2, 3, 8, 4}, 3).to(at::kDouble);
  EXPECT_EQ(model->rows_per_sample(8, 4), 9);
  EXPECT_TRUE(
      at::allclose(model->forward({.pixels = x}, {}), plain_vit(tensors, options, x), 1e-9, 1e-9));
}

TEST(Vit, NeedsSizesThatFit) {
  const auto first = [](const VitOptions& options) {
    const auto found = option_conflicts(ImageModelOptions(options));
    return found.empty() ? "" : found.front().keys.front();
  };
  EXPECT_EQ(first(small_vit()), "");
  EXPECT_EQ(first(preset("none")), "model.num_layers");
  VitOptions options = small_vit();
  options.num_heads = 3;
  EXPECT_EQ(first(options), "model.num_heads");
  options = small_vit();
  options.image_size = 7;
  EXPECT_EQ(first(options), "model.image_size");
}

TEST(Vit, LearnsBesideFrozenMatricesWithLora) {
  VitOptions options = small_vit();
  options.lora.rank = 2;
  options.lora.maps = {"*.qkv"};
  const auto model = image_model(options);
  EXPECT_EQ(tensors_of(*model).count("layers.1.self_attention.qkv.lora_a"), 1);
}

}  // namespace
}  // namespace stretto::models
