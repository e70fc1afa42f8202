#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "config/schema.h"
#include "models/images/alexnet.h"
#include "models/images/cifar_net.h"
#include "models/images/image_conflicts.h"
#include "models/registry.h"
#include "tests/models/images/image_cases.h"

namespace stretto::models {
namespace {

using testing::images::expect_same, testing::images::image_model, testing::images::kLabels,
    testing::images::meta_model, testing::images::pictures, testing::images::shake,
    testing::images::tensors_of;

static_assert(config::lists_every_member<AlexNetOptions>);
static_assert(config::lists_every_member<CifarNetOptions>);

using Tensors = std::map<std::string, at::Tensor>;

at::Tensor layer(const Tensors& tensors, const std::string& name, const at::Tensor& x) {
  return at::linear(x, tensors.at(name + ".weight"), tensors.at(name + ".bias"));
}

at::Tensor plain_alexnet(const Tensors& tensors, at::Tensor x) {
  const auto conv = [&](const std::string& name, int64_t stride, int64_t padding) {
    x = at::conv2d(x, tensors.at(name + ".weight"), tensors.at(name + ".bias"), stride, padding)
            .relu();
  };
  conv("conv1", 4, 2);
  x = at::max_pool2d(x, 3, 2);
  conv("conv2", 1, 2);
  x = at::max_pool2d(x, 3, 2);
  for (const char* name : {"conv3", "conv4", "conv5"}) conv(name, 1, 1);
  x = at::adaptive_avg_pool2d(at::max_pool2d(x, 3, 2), {6, 6}).flatten(1);
  return layer(tensors, "head", layer(tensors, "fc2", layer(tensors, "fc1", x).relu()).relu());
}

/// Sixty million weights are drawn once.
ImageModel& alexnet() {
  static const auto model = image_model(AlexNetOptions{}, at::kFloat);
  return *model;
}

TEST(AlexNet, IsThePlainNetwork) {
  const at::NoGradGuard no_grad;
  const at::Tensor x = pictures(2, 70, at::kFloat);
  EXPECT_TRUE(at::allclose(alexnet().forward({.pixels = x}, {}),
                           plain_alexnet(tensors_of(alexnet()), x), 1e-4, 1e-5));
}

TEST(AlexNet, HasTheSizeAndTheCostOfTorchvisions) {
  const auto model = meta_model(AlexNetOptions{});
  EXPECT_EQ(num_parameters(*model), 61100840);
  EXPECT_NEAR(model->operations(224, 224) / 2e9, 0.714, 0.001);
}

TEST(AlexNet, DropsTheSameInAnyCutOfABatch) {
  ImageModel* model = &alexnet();
  const at::Tensor x = pictures(3, 63, at::kFloat);
  const ForwardContext context{.training = true, .dropout_key = 5};
  const at::NoGradGuard no_grad;
  const at::Tensor together = model->forward(
      {.pixels = x, .row_keys = image_row_keys(std::vector<int64_t>{7, 8, 9}, 1, at::kCPU)},
      context);
  const at::Tensor last =
      model->forward({.pixels = x.narrow(0, 2, 1),
                      .row_keys = image_row_keys(std::vector<int64_t>{9}, 1, at::kCPU)},
                     context);
  EXPECT_TRUE(at::allclose(together.narrow(0, 2, 1), last, 1e-4, 1e-5));
  EXPECT_FALSE(at::allclose(together, model->forward({.pixels = x}, {}), 1e-2, 1e-3));
}

TEST(AlexNet, RefusesPicturesOfWhichNothingWouldBeLeft) {
  ImageModel* model = &alexnet();
  EXPECT_EQ(model->forward({.pixels = pictures(1, 63, at::kFloat)}, {}).size(1), kLabels);
  EXPECT_THROW(model->forward({.pixels = pictures(1, 62, at::kFloat)}, {}), Error);
  const auto found =
      image_size_conflicts(ImageModelOptions(AlexNetOptions{}), "data.image_size", 32, 32);
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found.front().keys.front(), "data.image_size");
  EXPECT_EQ(found.front().what, "the model reads pictures of at least 63 x 63 pixels, got 32 x 32");
}

at::Tensor plain_cifar_net(const Tensors& tensors, at::Tensor x, bool training) {
  const auto conv = [&](const std::string& name) {
    const at::Tensor& weight = tensors.at(name + ".weight");
    const auto bias = tensors.find(name + ".bias");
    x = at::conv2d(x, weight, bias == tensors.end() ? at::Tensor() : bias->second, 1,
                   weight.size(2) / 2);
  };
  const auto norm_and_pool = [&](const std::string& name) {
    x = at::batch_norm(x, tensors.at(name + ".weight"), tensors.at(name + ".bias"),
                       tensors.at(name + ".running_mean").clone(),
                       tensors.at(name + ".running_var").clone(), training, 0.1, 1e-4, false)
            .relu();
    // "SAME" of an even side: one row of nothing below, none above.
    const double nothing = -std::numeric_limits<double>::infinity();
    x = at::max_pool2d(at::constant_pad_nd(x, {0, 1, 0, 1}, nothing), 3, 2);
  };
  const auto relu = [&](const std::string& name) {
    conv(name);
    x = x.relu();
  };
  relu("conv1");
  relu("conv2");
  conv("conv3");
  norm_and_pool("bn1");
  relu("conv4");
  relu("conv5");
  conv("conv6");
  norm_and_pool("bn2");
  relu("conv7");
  relu("conv8");
  return layer(tensors, "head", x.flatten(1));
}

TEST(CifarNet, IsThePlainNetwork) {
  CifarNetOptions options;
  options.image_size = 8;
  const auto model = image_model(options);
  shake(*model);
  const at::Tensor x = pictures(2, 8);
  for (const bool training : {true, false}) {
    SCOPED_TRACE(training);
    model->train(training);
    const auto tensors = tensors_of(*model);
    const auto want =
        testing::images::run(*model, [&] { return plain_cifar_net(tensors, x, training); });
    const auto got = testing::images::run(
        *model, [&] { return model->forward({.pixels = x}, {.training = training}); });
    expect_same(got, want, 1e-8);
  }
}

TEST(CifarNet, IsAsLargeAsOpenSeq2Seqs) {
  CifarNetOptions options;
  options.image_size = 28;
  const auto model = meta_model(options, 10);
  EXPECT_EQ(num_parameters(*model), 2771594);
  const double convolutions = 28 * 28 * (3456 + 2.0 * 147456) + 14 * 14 * (294912 + 2.0 * 589824) +
                              7 * 7 * (737280.0 + 102400);
  EXPECT_DOUBLE_EQ(model->operations(28, 28), 2 * (convolutions + 156800));
}

TEST(CifarNet, ReadsPicturesOfItsSizeAlone) {
  const auto model = image_model(CifarNetOptions{}, at::kFloat);
  EXPECT_THROW(model->forward({.pixels = pictures(1, 28, at::kFloat)}, {}), Error);
  EXPECT_TRUE(image_size_conflicts(ImageModelOptions(CifarNetOptions{}), "data.image_size", 32, 32)
                  .empty());
}

TEST(ImageModels, AreAFunctionOfTheSeed) {
  ResNetOptions options;
  options.preset = "resnet20";
  const auto weight = [&](uint64_t seed) {
    const auto model = make_image_model({.model = options, .num_labels = 10, .seed = seed});
    return tensors_of(*model).at("layer2.0.conv1.weight");
  };
  EXPECT_TRUE(at::equal(weight(3), weight(3)));
  EXPECT_FALSE(at::equal(weight(3), weight(4)));
}

TEST(ImageModels, HaveAKeyForEachRowOfASample) {
  const at::Tensor keys = image_row_keys(std::vector<int64_t>{5, 6}, 3, at::kCPU);
  ASSERT_EQ(keys.sizes(), (std::vector<int64_t>{6}));
  EXPECT_EQ(static_cast<uint64_t>(keys[4].item<int64_t>()), mix64(6, 1));
}

TEST(ImageModels, ReadLabelsThroughAHeadOfThatName) {
  ResNetOptions resnet;
  resnet.preset = "resnet20";
  VitOptions vit;
  vit.preset = "vit_tiny_patch4_32";
  for (const ImageModelOptions& options :
       {ImageModelOptions(resnet), ImageModelOptions(AlexNetOptions{}),
        ImageModelOptions(CifarNetOptions{}), ImageModelOptions(AirbenchOptions{}),
        ImageModelOptions(vit)}) {
    SCOPED_TRACE(options.name());
    const auto model = meta_model(options, 7);
    EXPECT_EQ(tensors_of(*model).at("head.weight").size(0), 7);
    EXPECT_EQ(model->num_labels(), 7);
    EXPECT_EQ(model->first_filters().size(1), 3);
    const int64_t size = usual_image_of(options);
    EXPECT_EQ(image_size_problem(image_limits_of(options), size, size), "");
    EXPECT_GT(model->operations(size, size), 0);
  }
}

}  // namespace
}  // namespace stretto::models
