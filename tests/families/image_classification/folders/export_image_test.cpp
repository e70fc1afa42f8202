#include "families/image_classification/folders/export_image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "families/image_classification/folders/import_image.h"
#include "families/image_classification/image_classification_options.h"
#include "store/weight_files.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/families/image_classification/folders/image_folders.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;
using stretto::testing::ModelFolder;
using stretto::testing::TempDir;

ExportedImageModel exported(const ImportedRun& run) {
  return {.description =
              description_of(run.experiment, experiment::images_of(run.experiment).data.classes),
          .tensors = run.tensors};
}

void expect_equal_runs(const ImportedRun& a, const ImportedRun& b) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (const auto& tensor : a.tensors) {
    const auto found = std::ranges::find(b.tensors, tensor.name, &store::TensorView::name);
    ASSERT_NE(found, b.tensors.end()) << tensor.name;
    EXPECT_EQ(found->shape, tensor.shape) << tensor.name;
    EXPECT_EQ(found->bytes, tensor.bytes) << tensor.name;
  }
  EXPECT_EQ(a.assets, b.assets);
}

TEST(ExportImage, WhatIsWrittenIsReadAgainWithTheSameTensors) {
  const TempDir out;
  for (const auto& [folder, format] : {std::pair(stretto::testing::resnet_folder(), "hf"),
                                       std::pair(stretto::testing::vit_folder(), "hf"),
                                       std::pair(stretto::testing::timm_folder(), "timm")}) {
    folder.write();
    const auto run = import_image(folder.dir->path());
    const auto place = out / (folder.config.value("model_type", "timm") + "_out");
    export_image(exported(run), format, "auto", place);
    const auto again = import_image(place);
    expect_equal_runs(run, again);
    const auto &own = experiment::images_of(run.experiment).augment,
               &read = experiment::images_of(again.experiment).augment;
    EXPECT_EQ(own.test_resize, read.test_resize);
    EXPECT_EQ(own.test_crop, read.test_crop);
    EXPECT_EQ(own.interpolation, read.interpolation);
    EXPECT_EQ(own.mean, read.mean);
  }
}

// Evaluation resizes pictures to the model's size at least.
TEST(ExportImage, NoPictureIsResizedBelowTheSizeOfTheModel) {
  const auto folder = stretto::testing::resnet_folder();
  folder.write();
  auto description = exported(import_image(folder.dir->path())).description;
  EXPECT_EQ(description.pictures.resize, 256);
  description.pictures.resize = 100;
  const auto again = description_of(experiment_of(description), description.labels);
  EXPECT_EQ(again.pictures.resize, description.pictures.size);
}

TEST(ExportImage, NamesOfTorchvisionAndLabelsAreWritten) {
  auto folder = stretto::testing::timm_folder();
  folder.write();
  const TempDir out;
  const auto run = import_image(folder.dir->path());
  EXPECT_EQ(export_image(exported(run), "torchvision", "auto", out / "tv"), "VisionTransformer");
  const store::WeightFiles weights(out / "tv");
  const auto has = [&](const std::string& name) {
    return std::ranges::count(weights.tensors(), name, &store::TensorView::name) > 0;
  };
  EXPECT_TRUE(has("encoder.layers.encoder_layer_1.self_attention.in_proj_weight"));
  EXPECT_TRUE(has("class_token"));
  EXPECT_EQ(read_label_file(out / "tv/labels.txt", 3),
            (std::vector<std::string>{"cat", "dog", "fish"}));
}

// PyTorch's modules have a count beside the statistics of each norm.
TEST(ExportImage, AResNetForCifarHasTheNamesOfItsPrograms) {
  ModelFolder folder;
  folder.config = nlohmann::json::object();
  folder.shapes = testing::ResNetShapes(models::shape_of(testing::resnet_of_depth(8)),
                                        testing::cifar_names(), 10)
                      .shapes;
  folder.write();
  const auto run = import_image(*folder.dir / "model.safetensors");
  const TempDir out;
  EXPECT_EQ(export_image(exported(run), "torchvision", "auto", out / "c"), "ResNet for CIFAR");
  expect_equal_runs(run, import_image(out / "c/model.safetensors"));
  const store::WeightFiles weights(out / "c");
  const auto count = std::ranges::find(weights.tensors(), "layer2.0.bn1.num_batches_tracked",
                                       &store::TensorView::name);
  ASSERT_NE(count, weights.tensors().end());
  EXPECT_EQ(count->dtype, store::DType::kI64);
  EXPECT_TRUE(count->shape.empty());
  // No class of the others is equal to it.
  for (const char* format : {"hf", "timm"}) {
    failure(ExitCode::kUsage, [&] { export_image(exported(run), format, "auto", out / "d"); });
    EXPECT_FALSE(std::filesystem::exists(out / "d"));
  }
}

TEST(ExportImage, WhatAFormatCannotExpressIsRefusedWithItsKey) {
  const auto folder = stretto::testing::vit_folder();  // an epsilon of 1e-12
  folder.write();
  const auto run = import_image(folder.dir->path());
  const TempDir out;
  const auto refused = [&](const ExportedImageModel& model, const std::string& format,
                           const std::string& type = "auto") {
    return failure(ExitCode::kUsage, [&] { export_image(model, format, type, out / "x"); })
        .message();
  };
  EXPECT_NE(refused(exported(run), "timm").find("model.norm_epsilon"), std::string::npos);
  EXPECT_NE(refused(exported(run), "torchvision").find("model.norm_epsilon"), std::string::npos);
  EXPECT_NE(refused(exported(run), "hf", "resnet").find("model.name"), std::string::npos);
  auto model = exported(run);
  auto options = model.description.model.as<models::VitOptions>();
  options.pooling = "mean";
  model.description.model = options;
  EXPECT_NE(refused(model, "hf").find("model.pooling"), std::string::npos);
  models::ResNetOptions resnet;
  for (const char* version : {"v1", "v2"}) {
    resnet.version = version;
    model.description.model = resnet;
    EXPECT_NE(refused(model, "torchvision").find("model.version"), std::string::npos);
  }
  resnet.preset = "resnext50_32x4d";
  resnet.version = "auto";
  model.description.model = resnet;
  EXPECT_NE(refused(model, "hf").find("model.groups"), std::string::npos);
}

TEST(ExportImage, ACheckpointOfAnotherModelIsRefused) {
  const auto folder = stretto::testing::vit_folder();
  folder.write();
  const auto run = import_image(folder.dir->path());
  const TempDir out;
  auto model = exported(run);
  model.tensors.pop_back();
  failure(ExitCode::kBadData, [&] { export_image(model, "hf", "auto", out / "x"); });
  model = exported(run);
  model.tensors.push_back(model.tensors.front());
  model.tensors.back().name = "other";
  failure(ExitCode::kBadData, [&] { export_image(model, "hf", "auto", out / "x"); });
}

}  // namespace
}  // namespace stretto::interchange
