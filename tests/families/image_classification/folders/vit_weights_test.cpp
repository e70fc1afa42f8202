#include "families/image_classification/folders/vit_weights.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/base/failure.h"
#include "tests/families/image_classification/folders/image_weights.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;
using stretto::testing::Shapes;
using stretto::testing::ShapesAlone;
using stretto::testing::small_vit;

/// What a look at shapes reads of a published model.
Shapes vit_landmarks(const models::VitSizes& sizes) {
  Shapes shapes{{"conv_proj.weight", {sizes.d_model, 3, sizes.patch_size, sizes.patch_size}},
                {"class_token", {1, 1, sizes.d_model}},
                {"encoder.pos_embedding", {1, sizes.grid() * sizes.grid() + 1, sizes.d_model}},
                {"heads.head.weight", {1000, sizes.d_model}}};
  for (int64_t i = 0; i < sizes.num_layers; ++i) {
    shapes["encoder.layers.encoder_layer_" + std::to_string(i) + ".mlp.0.weight"] = {sizes.ffn_dim,
                                                                                     sizes.d_model};
  }
  return shapes;
}

TEST(VitWeights, EveryPublishedModelIsKnownByItsShapes) {
  for (const auto& preset : models::kVitPresets) {
    const ShapesAlone tensors(vit_landmarks(preset.sizes));
    const auto found = find_vit(tensors.by_name, 0, "f.pth");
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->name, preset.name);
    EXPECT_EQ(found->spelling, ImageSpelling::kTorchvision);
    EXPECT_EQ(found->num_labels, 1000);
    EXPECT_EQ(found->model.as<models::VitOptions>().pooling, "class_token");
  }
}

TEST(VitWeights, SizesThatAreNotPublishedAreRead) {
  const ShapesAlone tensors(small_vit());
  const auto found = find_vit(tensors.by_name, 2, "f.pth");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->spelling, ImageSpelling::kTimm);
  const auto sizes = models::sizes_of(found->model.as<models::VitOptions>());
  EXPECT_EQ(sizes.num_layers, 2);
  EXPECT_EQ(sizes.d_model, 8);
  EXPECT_EQ(sizes.num_heads, 2);
  EXPECT_EQ(sizes.ffn_dim, 12);
  EXPECT_EQ(sizes.patch_size, 4);
  EXPECT_EQ(sizes.image_size, 8);
}

TEST(VitWeights, AModelWithoutAClassTokenReadsTheMean) {
  Shapes shapes = small_vit();
  shapes.erase("cls_token");
  shapes["pos_embed"] = {1, 4, 8};
  const auto found = find_vit(ShapesAlone(shapes).by_name, 2, "f.pth");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->model.as<models::VitOptions>().pooling, "mean");
}

// A wrong number of heads would compute something else with the same tensors.
TEST(VitWeights, HeadsThatNothingTellsAreNotGuessed) {
  const ShapesAlone tensors(small_vit());
  const auto error = failure(ExitCode::kBadData, [&] { find_vit(tensors.by_name, 0, "f.pth"); });
  EXPECT_NE(error.message().find("number of its heads"), std::string::npos) << error.message();
  EXPECT_NE(error.advice().find("num_heads"), std::string::npos) << error.advice();
}

TEST(VitWeights, AModelThatThereIsNoneOfIsRefusedWithTheReason) {
  const auto refused = [](const std::string& name, const std::vector<int64_t>& shape) {
    Shapes shapes = small_vit();
    shapes[name] = shape;
    const ShapesAlone tensors(shapes);
    return failure(ExitCode::kBadData, [&] { find_vit(tensors.by_name, 2, "f"); }).message();
  };
  EXPECT_NE(refused("patch_embed.proj.weight", {8, 3, 4, 2}).find("4 x 2"), std::string::npos);
  EXPECT_NE(refused("patch_embed.proj.weight", {8, 1, 4, 4}).find("1 channel"), std::string::npos);
  EXPECT_NE(refused("pos_embed", {1, 7, 8}).find("no square of patches"), std::string::npos);
  EXPECT_NE(refused("pos_embed", {7, 8}).find("is [7, 8]"), std::string::npos);
}

}  // namespace
}  // namespace stretto::interchange
