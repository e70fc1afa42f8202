#include "models/images/airbench.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <map>
#include <string>
#include <tuple>
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

static_assert(config::lists_every_member<AirbenchOptions>);

AirbenchOptions small_airbench(int64_t convolutions) {
  AirbenchOptions options;
  options.preset = "none";
  options.width1 = 26;
  options.width2 = 6;
  options.width3 = 8;
  options.convolutions = convolutions;
  options.norm_epsilon = 1e-3;
  return options;
}

using Tensors = std::map<std::string, at::Tensor>;

at::Tensor plain_airbench(const Tensors& tensors, const AirbenchOptions& options,
                          const at::Tensor& pixels, bool training) {
  const auto norm = [&](const std::string& name, const at::Tensor& x) {
    return at::batch_norm(x, tensors.at(name + ".weight"), tensors.at(name + ".bias"),
                          tensors.at(name + ".running_mean").clone(),
                          tensors.at(name + ".running_var").clone(), training, 0.4,
                          options.norm_epsilon, false);
  };
  at::Tensor x =
      at::gelu(at::conv2d(pixels, tensors.at("whiten.weight"), tensors.at("whiten.bias")));
  for (int64_t i = 0; i < 3; ++i) {
    const std::string group = "layers." + std::to_string(i) + ".";
    const auto conv = [&](const std::string& name, const at::Tensor& h) {
      return at::conv2d(h, tensors.at(group + name + ".weight"), {}, 1, 1);
    };
    x = at::gelu(norm(group + "norm1", at::max_pool2d(conv("conv1", x), 2)));
    const at::Tensor first = x;
    x = at::gelu(norm(group + "norm2", conv("conv2", x)));
    if (options.convolutions == 3) {
      x = at::gelu(norm(group + "norm3", conv("conv3", x)) + first);
    }
  }
  return at::max_pool2d(x, 3).flatten(1).mm(tensors.at("head.weight").t()) / 8;
}

TEST(Airbench, IsThePlainNetwork) {
  for (const int64_t convolutions : {2, 3}) {
    SCOPED_TRACE(convolutions);
    const AirbenchOptions options = small_airbench(convolutions);
    const auto model = image_model(options);
    shake(*model);
    const at::Tensor x = pictures(3, 32);
    for (const bool training : {true, false}) {
      SCOPED_TRACE(training);
      model->train(training);
      const auto tensors = tensors_of(*model);
      const auto want = testing::images::run(
          *model, [&] { return plain_airbench(tensors, options, x, training); });
      const auto got = testing::images::run(
          *model, [&] { return model->forward({.pixels = x}, {.training = training}); });
      expect_same(got, want);
    }
    const at::NoGradGuard no_grad;
    EXPECT_TRUE(at::allclose(model->forward({.pixels = x}, {}),
                             plain_airbench(tensors_of(*model), options, x, false), 1e-9, 1e-9));
  }
}

TEST(Airbench, HasTheSizeAndTheCostOfItsRecord) {
  const auto model = meta_model(AirbenchOptions{}, 10);
  EXPECT_EQ(num_parameters(*model), 1972792);
  // 8 epochs of 50,000 pictures: "0.29 PFLOP".
  EXPECT_NEAR(cost_of(*model, 32, 32).training_flops * 8 * 50000, 0.29e15, 0.01e15);
  AirbenchOptions large;
  large.preset = "airbench96";
  EXPECT_EQ(num_parameters(*meta_model(large, 10)), 9918776);
}

TEST(Airbench, FirstFiltersWhitenThePatchesOfPictures) {
  const auto model = image_model(AirbenchOptions{}, at::kFloat);
  // Neighbours alike, as in pictures.
  const at::Tensor x = at::avg_pool2d(testing::images::noise({600, 3, 12, 12}, 3), 3, 1, 1) +
                       0.1 * pictures(600, 12);
  model->start_from(x);
  const at::Tensor filters = model->first_filters();
  ASSERT_EQ(filters.sizes(), (std::vector<int64_t>{24, 3, 2, 2}));
  EXPECT_TRUE(at::equal(filters.narrow(0, 0, 12), -filters.narrow(0, 12, 12)));
  const at::Tensor y =
      at::conv2d(x.to(at::kFloat), filters.narrow(0, 0, 12)).permute({1, 0, 2, 3}).flatten(1);
  const at::Tensor moments = y.mm(y.t()) / y.size(1);
  const at::Tensor off = moments - at::diag(moments.diag());
  EXPECT_LT(off.abs().max().item<double>(), 1e-3);
  // eigenvalue / (eigenvalue + 5e-4)
  EXPECT_GT(moments.diag().min().item<double>(), 0.9);
  EXPECT_LT(moments.diag().max().item<double>(), 1 + 1e-3);
}

TEST(Airbench, FirstFiltersOfManyPicturesAreThoseOfPartsTogether) {
  const at::Tensor x = pictures(700, 6);  // more than are looked at at once
  const at::Tensor patches =
      x.unfold(2, 2, 1).unfold(3, 2, 1).permute({0, 2, 3, 1, 4, 5}).reshape({-1, 12});
  const at::Tensor moments = patches.t().mm(patches) / patches.size(0);
  const at::Tensor filters = whitening_filters(x, 2, 0.5).narrow(0, 0, 12).reshape({12, 12});
  // F M F^T is diagonal, e / (e + 0.5).
  const at::Tensor product = filters.to(at::kDouble).mm(moments).mm(filters.to(at::kDouble).t());
  const at::Tensor values = std::get<0>(at::linalg_eigh(moments, "U"));
  EXPECT_TRUE(at::allclose(product, at::diag(values / (values + 0.5)), 1e-5, 1e-6));
}

TEST(Airbench, FiltersStayAndTheirBiasLearnsForSomeEpochs) {
  AirbenchOptions options = small_airbench(2);
  options.whiten_bias_epochs = 2;
  const auto model = image_model(options);
  shake(*model);
  const at::Tensor x = pictures(3, 32);
  EXPECT_FALSE(tensors_of(*model).at("whiten.weight").requires_grad());
  EXPECT_FALSE(tensors_of(*model).at("layers.0.norm1.weight").requires_grad());
  for (const int64_t epoch : {0, 1, 2, 3}) {
    const auto got = testing::images::run(*model, [&] {
      return model->forward({.pixels = x, .row_keys = {}, .epoch = epoch}, {.training = true});
    });
    const double slope = got.gradients.at("whiten.bias").abs().max().item<double>();
    if (epoch < 2) {
      EXPECT_GT(slope, 1e-6);
    } else {
      EXPECT_EQ(slope, 0);
    }
  }
}

TEST(Airbench, ConvolutionsStartAsTheIdentity) {
  const auto model = image_model(AirbenchOptions{}, at::kFloat);
  const auto tensors = tensors_of(*model);
  const at::Tensor weight = tensors.at("layers.0.conv1.weight");  // [64, 24, 3, 3]
  const at::Tensor x = testing::images::noise({2, 24, 5, 5}, 4);
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(at::allclose(at::conv2d(x, weight.narrow(0, 0, 24), {}, 1, 1), x));
  const double bound = 1 / std::sqrt(24.0 * 9);
  const at::Tensor others = weight.narrow(0, 24, 40);
  EXPECT_LE(others.abs().max().item<double>(), bound);
  EXPECT_NEAR(others.std().item<double>(), bound / std::sqrt(3.0), 0.05 * bound);
  EXPECT_NEAR(tensors.at("head.weight").std().item<double>(), 1, 0.05);
  AirbenchOptions ninth;
  ninth.head_scale = 1.0 / 9;
  EXPECT_LE(tensors_of(*image_model(ninth)).at("head.weight").abs().max().item<double>(), 1.0 / 16);
}

TEST(Airbench, NeedsSizesAndPicturesThatLeaveAPixel) {
  AirbenchOptions options;
  options.preset = "none";
  EXPECT_EQ(option_conflicts(ImageModelOptions(options)).size(), 4);
  options = small_airbench(1);
  EXPECT_EQ(option_conflicts(ImageModelOptions(options)).front().keys.front(),
            "model.convolutions");
  const auto model = image_model(small_airbench(2));
  model->eval();
  EXPECT_EQ(model->forward({.pixels = pictures(1, 9)}, {}).sizes(),
            (std::vector<int64_t>{1, testing::images::kLabels}));
  EXPECT_THROW(model->forward({.pixels = pictures(1, 8)}, {}), Error);
}

}  // namespace
}  // namespace stretto::models
