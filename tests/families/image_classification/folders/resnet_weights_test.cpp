#include "families/image_classification/folders/resnet_weights.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/base/failure.h"
#include "tests/families/image_classification/folders/image_weights.h"

namespace stretto::interchange {
namespace {

using stretto::testing::cifar_names;
using stretto::testing::failure;
using stretto::testing::resnet_of_depth;
using stretto::testing::ResNetShapes;
using stretto::testing::Shapes;
using stretto::testing::ShapesAlone;
using stretto::testing::small_resnet;

ImageWeights found_resnet(const Shapes& shapes) {
  const ShapesAlone tensors(shapes);
  const auto found = find_resnet(tensors.by_name, "f.pth");
  EXPECT_TRUE(found.has_value());
  return found.value_or(ImageWeights());
}

const models::ResNetOptions& resnet_options(const ImageWeights& weights) {
  return weights.model.as<models::ResNetOptions>();
}

TEST(ResNetWeights, EveryPublishedNetworkIsKnownByItsShapes) {
  int known = 0;
  for (const auto& preset : models::kResNetPresets) {
    if (preset.version == "v2") continue;
    models::ResNetOptions options;
    options.preset = std::string(preset.name);
    const auto shape = models::shape_of(options);
    const auto names = shape.num_stages() == 3 ? cifar_names() : stretto::testing::ResNetNames();
    const auto found = found_resnet(ResNetShapes(shape, names, 1000).shapes);
    EXPECT_EQ(found.name, preset.name);
    EXPECT_EQ(resnet_options(found).preset, preset.name);
    EXPECT_EQ(found.num_labels, 1000);
    EXPECT_EQ(found.spelling == ImageSpelling::kCifar, shape.num_stages() == 3) << preset.name;
    ++known;
  }
  EXPECT_EQ(known, 16);
}

TEST(ResNetWeights, AWidthOfItsOwnIsNoPublishedOne) {
  const auto found = found_resnet(small_resnet());
  EXPECT_EQ(found.name, "ResNet");
  EXPECT_EQ(resnet_options(found).preset, "none");
  EXPECT_EQ(resnet_options(found).depth, 18);
  EXPECT_EQ(resnet_options(found).base_width, 2);
  EXPECT_EQ(resnet_options(found).shortcut, "B");
  EXPECT_EQ(found.num_labels, 3);
}

// kuangliu/pytorch-cifar: a ResNet of four stages for small pictures.
TEST(ResNetWeights, AStemForSmallPicturesIsToldByItsFilters) {
  auto options = resnet_of_depth(18, 4);
  options.stem = "cifar";
  const auto found =
      found_resnet(ResNetShapes(models::shape_of(options), cifar_names(), 10).shapes);
  EXPECT_EQ(resnet_options(found).stem, "cifar");
  EXPECT_EQ(resnet_options(found).shortcut, "B");
  EXPECT_EQ(found.spelling, ImageSpelling::kCifar);
}

TEST(ResNetWeights, ShortcutsAreToldByTheirConvolutions) {
  for (const char* shortcut : {"A", "B", "C"}) {
    auto options = resnet_of_depth(20);
    options.shortcut = shortcut;
    const auto found =
        found_resnet(ResNetShapes(models::shape_of(options), cifar_names(), 10).shapes);
    EXPECT_EQ(models::shape_of(resnet_options(found)).shortcut, models::shape_of(options).shortcut)
        << shortcut;
  }
}

// 50 layers have four stages, so that three of eight blocks are 52, as wide networks count them.
TEST(ResNetWeights, EightBlocksAStageAreThreeStages) {
  const auto found =
      found_resnet(ResNetShapes(models::shape_of(resnet_of_depth(52)), cifar_names(), 10).shapes);
  EXPECT_EQ(resnet_options(found).depth, 52);
}

TEST(ResNetWeights, OtherNamesAreNoResNet) {
  EXPECT_FALSE(find_resnet(ShapesAlone(stretto::testing::small_vit()).by_name, "f").has_value());
  EXPECT_FALSE(
      find_resnet(ShapesAlone(Shapes{{"conv1.weight", {2, 3, 7, 7}}}).by_name, "f").has_value());
}

TEST(ResNetWeights, ANetworkThatThereIsNoneOfIsRefusedWithTheReason) {
  const auto refused = [](const std::string& name, std::vector<int64_t> shape) {
    Shapes shapes = small_resnet();
    if (shape.empty()) {
      shapes.erase(name);
    } else {
      shapes[name] = std::move(shape);
    }
    const ShapesAlone tensors(shapes);
    return failure(ExitCode::kBadData, [&] { find_resnet(tensors.by_name, "f.pth"); }).message();
  };
  const auto expect_reason = [](const std::string& message, const std::string& reason) {
    EXPECT_NE(message.find(reason), std::string::npos) << message;
  };
  expect_reason(refused("conv1.weight", {2, 1, 7, 7}), "pictures of 1 channel");
  expect_reason(refused("conv1.weight", {2, 3, 5, 5}), "filters are 5 x 5");
  expect_reason(refused("conv1.weight", {2, 3, 7}), "is [2, 3, 7]");
  expect_reason(refused("conv1.weight", {0, 3, 7, 7}), "is [0, 3, 7, 7]");
  expect_reason(refused("conv1.weight", {3, 3, 7, 7}), "its widths are 3 and 2");
  expect_reason(refused("layer1.0.conv2.weight", {}), "no `layer1.0.conv2.weight`");
  expect_reason(refused("layer4.1.conv1.weight", {}), "stages have 2, 2, 2, 1 blocks");
  expect_reason(refused("fc.weight", {}), "no `fc.weight`");
}

}  // namespace
}  // namespace stretto::interchange
