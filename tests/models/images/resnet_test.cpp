#include "models/images/resnet.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/schema.h"
#include "models/images/image_conflicts.h"
#include "models/registry.h"
#include "tests/models/images/image_cases.h"

namespace stretto::models {
namespace {

using testing::images::expect_same, testing::images::image_model, testing::images::kLabels,
    testing::images::meta_model, testing::images::pictures, testing::images::shake,
    testing::images::tensors_of;

static_assert(config::lists_every_member<ResNetOptions>);

ResNetOptions resnet(const std::string& preset) {
  ResNetOptions options;
  options.preset = preset;
  return options;
}

/// Three stages of a block each, or the bottlenecks of ResNet-50, both narrow.
ResNetOptions narrow(const std::string& version, bool bottleneck) {
  ResNetOptions options;
  options.preset = "none";
  options.depth = bottleneck ? 50 : 8;
  options.version = version;
  options.base_width = bottleneck ? 8 : 4;
  return options;
}

/// The same network, of libtorch's operators and by names alone.
class PlainResNet {
 public:
  PlainResNet(const ResNetOptions& options, const torch::nn::Module& model, bool training)
      : shape_(shape_of(options)),
        epsilon_(options.norm_epsilon),
        training_(training),
        tensors_(tensors_of(model)) {}

  at::Tensor forward(const at::Tensor& pixels) const {
    const bool is_v2 = shape_.version == ResNetVersion::kV2;
    at::Tensor x = conv("conv1", pixels, shape_.has_large_stem ? 2 : 1);
    if (!is_v2) x = norm("bn1", x).relu();
    if (shape_.has_large_stem) x = at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
    for (int64_t stage = 0; stage < shape_.num_stages(); ++stage) {
      for (int64_t i = 0; i < shape_.blocks[static_cast<size_t>(stage)]; ++i) {
        const std::string name =
            "layer" + std::to_string(stage + 1) + "." + std::to_string(i) + ".";
        const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
        x = is_v2 ? block_v2(name, x, stride) : block(name, x, stride);
      }
    }
    if (is_v2) x = norm("final_norm", x).relu();
    return x.mean({2, 3}).mm(tensors_.at("head.weight").t()) + tensors_.at("head.bias");
  }

 private:
  at::Tensor conv(const std::string& name, const at::Tensor& x, int64_t stride,
                  int64_t groups = 1) const {
    const at::Tensor& weight = tensors_.at(name + ".weight");
    return at::conv2d(x, weight, {}, stride, weight.size(2) / 2, 1, groups);
  }
  at::Tensor norm(const std::string& name, const at::Tensor& x) const {
    return at::batch_norm(x, tensors_.at(name + ".weight"), tensors_.at(name + ".bias"),
                          tensors_.at(name + ".running_mean").clone(),
                          tensors_.at(name + ".running_var").clone(), training_, 0.1, epsilon_,
                          /*cudnn_enabled=*/false);
  }
  at::Tensor padded(const at::Tensor& x, int64_t out, int64_t stride) const {
    using at::indexing::None, at::indexing::Slice;
    const at::Tensor every =
        x.index({Slice(), Slice(), Slice(None, None, stride), Slice(None, None, stride)});
    const int64_t half = (out - x.size(1)) / 2;
    const at::Tensor zeros =
        at::zeros({x.size(0), half, every.size(2), every.size(3)}, x.options());
    return half == 0 ? every : at::cat({zeros, every, zeros}, 1);
  }
  at::Tensor block(const std::string& name, const at::Tensor& x, int64_t stride) const {
    const bool early = shape_.version == ResNetVersion::kV1 || !shape_.bottleneck;
    at::Tensor h = norm(name + "bn1", conv(name + "conv1", x, early ? stride : 1)).relu();
    h = norm(name + "bn2", conv(name + "conv2", h, early ? 1 : stride, shape_.groups));
    if (shape_.bottleneck) h = norm(name + "bn3", conv(name + "conv3", h.relu(), 1));
    const bool projects = tensors_.count(name + "downsample.0.weight") > 0;
    const at::Tensor beside =
        projects ? norm(name + "downsample.1", conv(name + "downsample.0", x, stride))
                 : padded(x, h.size(1), stride);
    return (h + beside).relu();
  }
  at::Tensor block_v2(const std::string& name, const at::Tensor& x, int64_t stride) const {
    const at::Tensor pre = norm(name + "bn1", x).relu();
    at::Tensor h = conv(name + "conv1", pre, shape_.bottleneck ? 1 : stride);
    h = conv(name + "conv2", norm(name + "bn2", h).relu(), shape_.bottleneck ? stride : 1,
             shape_.groups);
    if (shape_.bottleneck) h = conv(name + "conv3", norm(name + "bn3", h).relu(), 1);
    const bool projects = tensors_.count(name + "downsample.0.weight") > 0;
    return h + (projects ? conv(name + "downsample.0", pre, stride) : padded(x, h.size(1), stride));
  }

  ResNetShape shape_;
  double epsilon_;
  bool training_;
  std::map<std::string, at::Tensor> tensors_;
};

void expect_plain(const ResNetOptions& options, int64_t size) {
  const auto model = image_model(options);
  shake(*model);
  const at::Tensor x = pictures(3, size);
  for (const bool training : {true, false}) {
    SCOPED_TRACE(training ? "training" : "evaluation");
    model->train(training);
    // First the plain one: ours moves the running statistics.
    const PlainResNet plain(options, *model, training);
    const auto want = testing::images::run(*model, [&] { return plain.forward(x); });
    const auto got = testing::images::run(
        *model, [&] { return model->forward({.pixels = x}, {.training = training}); });
    expect_same(got, want);
    if (training) continue;
    const at::NoGradGuard no_grad;  // norms are part of the filters then
    EXPECT_TRUE(at::allclose(model->forward({.pixels = x}, {}), want.logits, 1e-9, 1e-9));
  }
}

TEST(ResNet, IsThePlainNetworkWithBasicBlocksAndPaddedShortcuts) {
  expect_plain(narrow("v1", false), 12);
}

TEST(ResNet, IsThePlainNetworkWithProjections) {
  ResNetOptions options = narrow("v1.5", false);
  options.shortcut = "B";
  expect_plain(options, 12);
  options.shortcut = "C";
  expect_plain(options, 9);
}

TEST(ResNet, IsThePlainNetworkWithBottlenecksOfEachVersion) {
  for (const char* version : {"v1", "v1.5", "v2"}) {
    SCOPED_TRACE(version);
    expect_plain(narrow(version, true), 40);
  }
}

TEST(ResNet, IsThePlainNetworkWithGroups) {
  ResNetOptions options = narrow("v1.5", true);
  options.groups = 2;
  options.width_per_group = 32;
  expect_plain(options, 33);
}

TEST(ResNet, IsThePlainNetworkInFormV2WithWideStages) {
  ResNetOptions options = narrow("v2", false);
  options.depth = 10;
  options.widen_factor = 2;
  expect_plain(options, 12);
}

struct Published {
  const char* preset;
  int64_t parameters;
  int64_t labels = 1000;
};

TEST(ResNet, HasAsManyParametersAsPublished) {
  // torchvision 0.26; timm's resnet200; the last ones by He et al. 2015 and Zagoruyko and
  // Komodakis 2016, whose tables round them.
  for (const Published& one : std::vector<Published>{{"resnet18", 11689512},
                                                     {"resnet34", 21797672},
                                                     {"resnet50", 25557032},
                                                     {"resnet101", 44549160},
                                                     {"resnet152", 60192808},
                                                     {"resnet200", 64673832},
                                                     {"resnext50_32x4d", 25028904},
                                                     {"resnext101_32x8d", 88791336},
                                                     {"resnext101_64x4d", 83455272},
                                                     {"wide_resnet50_2", 68883240},
                                                     {"wide_resnet101_2", 126886696},
                                                     {"resnet20", 269722, 10},
                                                     {"resnet32", 464154, 10},
                                                     {"resnet44", 658586, 10},
                                                     {"resnet56", 853018, 10},
                                                     {"resnet110", 1727962, 10},
                                                     {"wrn28_10", 36479194, 10}}) {
    EXPECT_EQ(num_parameters(*meta_model(resnet(one.preset), one.labels)), one.parameters)
        << one.preset;
  }
}

TEST(ResNet, CostsAsManyProductsAsPublished) {
  // torchvision's tables, in 10^9 multiplications for a picture of 224 x 224.
  const std::map<std::string, double> published{
      {"resnet18", 1.814},          {"resnet34", 3.664},        {"resnet50", 4.089},
      {"resnet101", 7.801},         {"resnet152", 11.514},      {"resnext50_32x4d", 4.23},
      {"resnext101_32x8d", 16.414}, {"wide_resnet50_2", 11.398}};
  for (const auto& [preset, products] : published) {
    EXPECT_NEAR(meta_model(resnet(preset))->operations(224, 224) / 2e9, products, 0.002 * products)
        << preset;
  }
  const auto model = meta_model(resnet("resnet18"));
  const ModelCost cost = cost_of(*model, 224, 224);
  EXPECT_EQ(cost.parameters, 11689512);
  EXPECT_DOUBLE_EQ(cost.training_flops, 3 * model->operations(224, 224));
}

TEST(ResNet, NamesTensorsAsTorchvision) {
  const auto model = meta_model(resnet("resnet50"));
  std::set<std::string> names;
  for (const auto& item : model->named_parameters()) names.insert(item.key());
  for (const auto& item : model->named_buffers()) names.insert(item.key());
  EXPECT_EQ(names.size(), 161 + 2 * 53);  // torchvision has num_batches_tracked of 53 norms besides
  for (const char* name :
       {"conv1.weight", "bn1.running_var", "layer1.0.conv3.weight", "layer1.0.downsample.0.weight",
        "layer1.0.downsample.1.bias", "layer3.5.bn2.running_mean", "layer4.2.conv1.weight",
        "head.weight", "head.bias"}) {
    EXPECT_EQ(names.count(name), 1) << name;
  }
  EXPECT_EQ(names.count("layer1.1.downsample.0.weight"), 0);
}

TEST(ResNet, StartsAsGoyalEtAl) {
  ResNetOptions options = resnet("resnet18");
  options.zero_gamma = true;
  const auto model = make_image_model({.model = options, .num_labels = 1000});
  const auto tensors = tensors_of(*model);
  const auto deviation = [&](const std::string& name) {
    return tensors.at(name).detach().std().item<double>();
  };
  EXPECT_NEAR(deviation("conv1.weight"), std::sqrt(2.0 / (64 * 49)), 5e-4);
  EXPECT_NEAR(deviation("layer2.0.conv1.weight"), std::sqrt(2.0 / (128 * 9)), 3e-4);
  EXPECT_NEAR(deviation("layer4.0.downsample.0.weight"), std::sqrt(2.0 / 512), 3e-4);
  EXPECT_NEAR(deviation("head.weight"), 0.01, 1e-4);
  EXPECT_TRUE(at::equal(tensors.at("head.bias"), at::zeros(1000)));
  EXPECT_TRUE(at::equal(tensors.at("layer3.1.bn2.weight"), at::zeros(256)));
  EXPECT_TRUE(at::equal(tensors.at("layer3.1.bn1.weight"), at::ones(256)));
  EXPECT_TRUE(at::equal(tensors.at("layer3.0.downsample.1.weight"), at::ones(256)));
}

TEST(ResNet, StartsByTheUsersRules) {
  ResNetOptions options = narrow("v1", false);
  options.init = {"layer2.*conv* constant value=0.5"};
  const auto tensors = tensors_of(*image_model(options));
  EXPECT_TRUE(
      at::equal(tensors.at("layer2.0.conv2.weight"), at::full({8, 8, 3, 3}, 0.5, at::kDouble)));
  EXPECT_FALSE(
      at::equal(tensors.at("layer1.0.conv2.weight"), at::full({4, 4, 3, 3}, 0.5, at::kDouble)));
}

TEST(ResNet, WithZeroGammaIsAtFirstWhatShortcutsLeave) {
  ResNetOptions options = narrow("v1", false);
  options.zero_gamma = true;
  const auto model = image_model(options);
  model->eval();
  const at::Tensor x = pictures(2, 12);
  const auto tensors = tensors_of(*model);
  const at::NoGradGuard no_grad;
  at::Tensor h = at::conv2d(x, tensors.at("conv1.weight"), {}, 1, 1);
  h = (h / std::sqrt(1 + options.norm_epsilon))
          .relu()
          .index({"...", at::indexing::Slice(0, 12, 4), at::indexing::Slice(0, 12, 4)});
  const at::Tensor padded = at::constant_pad_nd(h.mean({2, 3}), {6, 6});
  EXPECT_TRUE(at::allclose(model->forward({.pixels = x}, {}),
                           padded.mm(tensors.at("head.weight").t()), 1e-9, 1e-9));
}

TEST(ResNet, EvaluatesAPictureAloneAsInABatch) {
  const auto model = image_model(resnet("resnet20"), at::kFloat);
  model->eval();
  const at::Tensor x = pictures(7, 32, at::kFloat);
  const at::NoGradGuard no_grad;
  const at::Tensor together = model->forward({.pixels = x}, {});
  for (int64_t i = 0; i < x.size(0); ++i) {
    const at::Tensor alone = model->forward({.pixels = x.narrow(0, i, 1)}, {});
    EXPECT_TRUE(at::allclose(alone, together.narrow(0, i, 1), 1e-4, 1e-5)) << i;
  }
}

TEST(ResNet, ReadsAnyLayoutOfMemoryAndGreyPictures) {
  const auto model = image_model(narrow("v1.5", false), at::kFloat, /*channels=*/1);
  model->eval();
  const at::Tensor x = pictures(2, 16, at::kFloat, 1);
  const at::NoGradGuard no_grad;
  const at::Tensor want = model->forward({.pixels = x}, {});
  const at::Tensor strided = at::stack({x, x}, -1).select(-1, 0);
  EXPECT_TRUE(at::allclose(model->forward({.pixels = strided}, {}), want));
  EXPECT_THROW(model->forward({.pixels = pictures(2, 16, at::kFloat)}, {}), Error);
}

TEST(ResNet, DropsTheSameInAnyCutOfABatch) {
  ResNetOptions options = narrow("v1", false);
  options.block_dropout = 0.4;
  options.drop_path = 0.5;
  const auto model = image_model(options);
  shake(*model);
  model->eval();  // norms by running statistics; dropout goes by the context
  EXPECT_TRUE(model->has_dropout());
  const at::Tensor x = pictures(4, 8);
  const std::vector<int64_t> ids{3, 11, 4, 900};
  const ForwardContext context{.training = true, .dropout_key = 77};
  const at::Tensor keys = image_row_keys(ids, 1, at::kCPU);
  const at::Tensor together = model->forward({.pixels = x, .row_keys = keys}, context);
  const at::Tensor behind =
      model->forward({.pixels = x.narrow(0, 2, 2),
                      .row_keys = image_row_keys(std::vector<int64_t>{4, 900}, 1, at::kCPU)},
                     context);
  EXPECT_TRUE(at::allclose(together.narrow(0, 2, 2), behind));
  EXPECT_FALSE(at::allclose(together, model->forward({.pixels = x}, {})));
}

TEST(ResNet, RefusesWhatThereIsNoNetworkOf) {
  const auto first = [](const ResNetOptions& options) {
    const auto found = option_conflicts(ImageModelOptions(options));
    return found.empty() ? "" : found.front().keys.front() + ": " + found.front().what;
  };
  EXPECT_EQ(first(resnet("resnet50")), "");
  ResNetOptions options = resnet("none");
  EXPECT_NE(first(options).find("model.depth: neither"), std::string::npos);
  options.depth = 51;
  EXPECT_NE(first(options).find("no residual network of 51"), std::string::npos);
  options.depth = 18;
  options.groups = 32;
  EXPECT_NE(first(options).find("model.groups"), std::string::npos);
  options = resnet("resnet50");
  options.width_per_group = 3;
  options.groups = 5;
  EXPECT_EQ(first(options), "");
  options.base_width = 10;
  options.groups = 1;
  options.width_per_group = 5;
  EXPECT_NE(first(options).find("model.width_per_group"), std::string::npos);
  options = resnet("resnet50");
  options.version = "v2";
  options.zero_gamma = true;
  EXPECT_NE(first(options).find("model.zero_gamma"), std::string::npos);
  EXPECT_THROW(image_model(options), Error);
}

}  // namespace
}  // namespace stretto::models
