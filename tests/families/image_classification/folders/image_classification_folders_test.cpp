#include "families/image_classification/folders/image_classification_folders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "families/image_classification/image_classification_options.h"
#include "interchange/config_reader.h"
#include "interchange/import_folder.h"
#include "interchange/initial_model.h"
#include "interchange/model_folders.h"
#include "tests/base/failure.h"
#include "tests/families/image_classification/folders/image_folders.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;
using stretto::testing::ModelFolder;

experiment::Experiment own_image_task() {
  experiment::Experiment own;
  own.task.select("image_classification");
  return own;
}

TEST(ImageClassificationFolders, FoldersOfThreeKindsAreRead) {
  for (const auto& folder : {stretto::testing::resnet_folder(), stretto::testing::vit_folder(),
                             stretto::testing::timm_folder()}) {
    const ConfigReader config(folder.config, "config.json");
    EXPECT_EQ(&reader_of(config, {}), &image_classification_folders());
    EXPECT_TRUE(reads_folders_of(&image_classification_folders(), config));
  }
  const ConfigReader other({{"model_type", "bert"}, {"architecture", "resnet50"}}, "config.json");
  EXPECT_FALSE(reads_folders_of(&image_classification_folders(), other));
}

TEST(ImageClassificationFolders, AFileOfWeightsIsReadByItsNames) {
  ModelFolder folder;
  folder.shapes = stretto::testing::small_resnet();
  folder.write("w.safetensors");
  EXPECT_EQ(&reader_of_file(*folder.dir / "w.safetensors"), &image_classification_folders());
  EXPECT_EQ(import_folder(*folder.dir / "w.safetensors").model_class, "ResNet");
  folder.shapes = {{"encoder.weight", {2, 2}}};
  folder.write("w.safetensors");
  const auto error =
      failure(ExitCode::kBadData, [&] { import_folder(*folder.dir / "w.safetensors"); });
  EXPECT_NE(error.message().find("`encoder.weight`"), std::string::npos) << error.message();
}

TEST(ImageClassificationFolders, ARunBeginsWithAFileOfWeights) {
  ModelFolder folder;
  folder.shapes = stretto::testing::small_resnet();
  folder.write("w.safetensors");
  const auto file = *folder.dir / "w.safetensors";
  EXPECT_TRUE(is_model_folder(file));
  const auto other = describe_initial_model(file, own_image_task());
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->tensors.size(), folder.shapes.size());
  EXPECT_EQ(std::ranges::count(other->tensors, "head.weight"), 1);
  const auto& model = experiment::images_of(other->options).model;
  EXPECT_EQ(model.as<models::ResNetOptions>().base_width, 2);
  EXPECT_EQ(import_initial_model(file, own_image_task()).tensors.size(), folder.shapes.size());
  // A model of another kind of task.
  experiment::Experiment own;
  own.task.select("text_classification");
  const auto error = failure(ExitCode::kUsage, [&] { import_initial_model(file, own); });
  EXPECT_NE(error.message().find("a model of pictures"), std::string::npos) << error.message();
}

}  // namespace
}  // namespace stretto::interchange
