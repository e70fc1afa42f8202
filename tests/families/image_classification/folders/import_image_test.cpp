#include "families/image_classification/folders/import_image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "families/image_classification/image_classification_options.h"
#include "tests/base/failure.h"
#include "tests/families/image_classification/folders/image_folders.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;
using stretto::testing::ModelFolder;
using stretto::testing::resnet_folder;
using stretto::testing::resnet_of_depth;
using stretto::testing::ResNetShapes;
using stretto::testing::small_resnet;
using stretto::testing::timm_folder;
using stretto::testing::vit_folder;

using Numbers = std::vector<double>;

const experiment::ImageClassificationOptions& sections_of(const ImportedRun& run) {
  return experiment::images_of(run.experiment);
}

const store::TensorView& tensor_of(const ImportedRun& run, const std::string& name) {
  const auto found = std::ranges::find(run.tensors, name, &store::TensorView::name);
  EXPECT_NE(found, run.tensors.end()) << name;
  return *found;
}

/// A file of weights with these tensors, alone.
ModelFolder weights_alone(const testing::Shapes& shapes, const std::string& file = "m.safetensors",
                          const std::string& wrapper = "") {
  ModelFolder folder;
  folder.config = nlohmann::json::object();
  for (const auto& [name, shape] : shapes) folder.shapes[wrapper + name] = shape;
  folder.write(file);
  return folder;
}

std::string refused_import(const ModelFolder& folder, const std::string& file = "",
                           const ImportOptions& options = {}) {
  const auto place = file.empty() ? folder.dir->path() : *folder.dir / file;
  return failure(ExitCode::kBadData, [&] { import_image(place, options); }).message();
}

void expect_import_refused(const ModelFolder& folder, const std::string& reason) {
  folder.write();
  const std::string message = refused_import(folder);
  EXPECT_NE(message.find(reason), std::string::npos) << message;
}

TEST(ImportImage, AFileOfTorchvisionIsReadByItsNames) {
  const auto folder = weights_alone(small_resnet());
  const auto run = import_image(*folder.dir / "m.safetensors");
  EXPECT_EQ(run.tensors.size(), folder.shapes.size());
  EXPECT_TRUE(run.missing.empty());
  EXPECT_TRUE(run.left_out.empty());
  EXPECT_EQ(tensor_of(run, "head.weight").bytes, folder.values_of("fc.weight"));
  EXPECT_EQ(tensor_of(run, "layer2.0.downsample.1.running_var").bytes,
            folder.values_of("layer2.0.downsample.1.running_var"));
  EXPECT_EQ(run.assets.at("labels.json"), R"(["0","1","2"])");
  const auto& sections = sections_of(run);
  EXPECT_EQ(sections.data.classes, (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(sections.augment.image_size, 224);
  EXPECT_EQ(sections.augment.test_resize, Numbers{256});
  EXPECT_EQ(sections.augment.mean, (Numbers{0.485, 0.456, 0.406}));
}

// akamaster/pytorch_resnet_cifar10: DataParallel's `module.`, `linear`, and no shortcut's weights.
TEST(ImportImage, AResNetForCifarIsReadBehindItsWrapper) {
  const auto shapes =
      ResNetShapes(models::shape_of(resnet_of_depth(20)), stretto::testing::cifar_names(), 10)
          .shapes;
  const auto folder = weights_alone(shapes, "m.safetensors", "module.");
  const auto run = import_image(*folder.dir / "m.safetensors");
  EXPECT_EQ(run.model_class, "resnet20");
  EXPECT_EQ(run.tensors.size(), shapes.size());
  EXPECT_EQ(tensor_of(run, "head.bias").bytes, folder.values_of("module.linear.bias"));
  EXPECT_EQ(sections_of(run).augment.image_size, 32);
  EXPECT_TRUE(sections_of(run).augment.test_resize.empty());
}

TEST(ImportImage, AFileOfLabelsNamesTheClasses) {
  const auto folder = weights_alone(small_resnet());
  const auto file = *folder.dir / "m.safetensors";
  const auto labels_of = [&](const std::string& text) {
    const ImportOptions options{.labels = folder.dir->write("labels.txt", text)};
    return sections_of(import_image(file, options)).data.classes;
  };
  const auto refused = [&](const std::string& text) {
    const ImportOptions options{.labels = folder.dir->write("labels.txt", text)};
    return refused_import(folder, "m.safetensors", options);
  };
  EXPECT_EQ(labels_of("cat\r\ndog\nfish\n\n"), (std::vector<std::string>{"cat", "dog", "fish"}));
  // ImageNet has two cranes.
  EXPECT_EQ(labels_of("crane\ndog\ncrane"),
            (std::vector<std::string>{"crane", "dog", "crane (2)"}));
  EXPECT_NE(refused("cat\ndog\n").find("2 names, and the model has 3 outputs"), std::string::npos);
  EXPECT_NE(refused("cat\n\ndog\n").find("class 1 is empty"), std::string::npos);
  EXPECT_NE(refused("cat\ta\nb\nc").find("has a tab"), std::string::npos);
}

TEST(ImportImage, WhatIsMissingOrTooMuchIsListed) {
  auto shapes = small_resnet();
  shapes["layer1.0.se.fc1.weight"] = {1, 2};  // squeeze and excitation
  shapes["layer1.0.bn1.num_batches_tracked"] = {1};
  auto folder = weights_alone(shapes);
  EXPECT_NE(refused_import(folder, "m.safetensors").find("layer1.0.se.fc1.weight"),
            std::string::npos);
  const auto run = import_image(*folder.dir / "m.safetensors", {.ignore_extra = true});
  EXPECT_EQ(run.left_out, std::vector<std::string>{"layer1.0.se.fc1.weight"});

  shapes = small_resnet();
  shapes.erase("layer3.1.bn2.running_mean");
  folder = weights_alone(shapes);
  EXPECT_NE(refused_import(folder, "m.safetensors").find("layer3.1.bn2.running_mean"),
            std::string::npos);
  const auto lenient = import_image(*folder.dir / "m.safetensors", {.allow_missing = true});
  EXPECT_EQ(lenient.missing, std::vector<std::string>{"layer3.1.bn2.running_mean"});
}

TEST(ImportImage, AResNetOfTransformersIsRead) {
  const auto folder = resnet_folder();
  folder.write();
  const auto run = import_image(folder.dir->path());
  EXPECT_EQ(run.model_class, "ResNetForImageClassification");
  EXPECT_EQ(run.tensors.size(), folder.shapes.size());
  EXPECT_EQ(
      tensor_of(run, "layer4.1.bn2.running_mean").bytes,
      folder.values_of("resnet.encoder.stages.3.layers.1.layer.1.normalization.running_mean"));
  EXPECT_EQ(tensor_of(run, "layer2.0.downsample.0.weight").bytes,
            folder.values_of("resnet.encoder.stages.1.layers.0.shortcut.convolution.weight"));
  const auto& sections = sections_of(run);
  EXPECT_EQ(sections.data.classes, (std::vector<std::string>{"cat", "dog", "tench, Tinca tinca"}));
  EXPECT_EQ(sections.augment.interpolation, "bicubic");
  EXPECT_EQ(sections.augment.test_crop, "center");
  EXPECT_EQ(sections.augment.test_resize, Numbers{256});
  EXPECT_EQ(sections.model.as<models::ResNetOptions>().version, "v1.5");
}

TEST(ImportImage, AVisionTransformerOfTransformersIsRead) {
  const auto folder = vit_folder();
  folder.write();
  const auto run = import_image(folder.dir->path());
  EXPECT_EQ(tensor_of(run, "class_token").shape, std::vector<int64_t>{8});
  EXPECT_EQ(tensor_of(run, "positions").shape, (std::vector<int64_t>{5, 8}));
  const std::string attention = "vit.encoder.layer.1.attention.attention.";
  EXPECT_EQ(tensor_of(run, "layers.1.self_attention.qkv.weight").bytes,
            folder.values_of(attention + "query.weight") +
                folder.values_of(attention + "key.weight") +
                folder.values_of(attention + "value.weight"));
  EXPECT_EQ(tensor_of(run, "layers.0.ffn.down.bias").bytes,
            folder.values_of("vit.encoder.layer.0.output.dense.bias"));
  const auto& sections = sections_of(run);
  EXPECT_EQ(sections.augment.test_crop, "squash");
  EXPECT_EQ(sections.augment.mean, (Numbers{0.5, 0.5, 0.5}));
  EXPECT_EQ(sections.model.as<models::VitOptions>().norm_epsilon, 1e-12);
}

TEST(ImportImage, AFolderOfTimmIsRead) {
  const auto folder = timm_folder();
  folder.write();
  const auto run = import_image(folder.dir->path());
  EXPECT_EQ(run.model_class, "vit_tiny_patch16_224");
  EXPECT_EQ(tensor_of(run, "layers.1.self_attention.qkv.weight").bytes,
            folder.values_of("blocks.1.attn.qkv.weight"));
  const auto& sections = sections_of(run);
  EXPECT_EQ(models::sizes_of(sections.model.as<models::VitOptions>()).num_heads, 2);
  EXPECT_EQ(sections.data.classes, (std::vector<std::string>{"cat", "dog", "fish"}));
  EXPECT_EQ(sections.augment.image_size, 8);
  EXPECT_EQ(sections.augment.test_resize, Numbers{10});
  EXPECT_EQ(sections.augment.interpolation, "bicubic");
}

TEST(ImportImage, WhatAModelHereCannotBeEqualToIsRefused) {
  const auto refuse_resnet = [](const char* key, const nlohmann::json& value) {
    auto folder = resnet_folder();
    folder.config[key] = value;
    expect_import_refused(folder, std::string("`") + key + "`");
  };
  refuse_resnet("architectures", {"ResNetBackbone"});
  refuse_resnet("layer_type", "inverted");
  refuse_resnet("depths", {2, 2, 2, 3});
  refuse_resnet("depths", "2222");
  refuse_resnet("hidden_sizes", {2, 4, 8, 32});
  refuse_resnet("hidden_sizes", {2, 4, 8});
  refuse_resnet("hidden_sizes", nlohmann::json::array());
  refuse_resnet("hidden_act", "gelu");
  refuse_resnet("downsample_in_first_stage", true);
  refuse_resnet("num_channels", 1);
  refuse_resnet("problem_type", "multi_label_classification");
  refuse_resnet("id2label", {{"0", "cat"}, {"2", "dog"}});
  const auto refuse_vit = [](const char* key, const nlohmann::json& value) {
    auto folder = vit_folder();
    folder.config[key] = value;
    expect_import_refused(folder, std::string("`") + key + "`");
  };
  refuse_vit("qkv_bias", false);
  refuse_vit("num_attention_heads", 3);
  refuse_vit("image_size", 9);
  refuse_vit("hidden_act", "selu");
  refuse_vit("head_dim", 8);
}

TEST(ImportImage, AConfigOfTimmThatChangesTheModelIsRefused) {
  const auto refuse_timm = [](const char* key, const nlohmann::json& value,
                              const std::string& reason) {
    auto folder = timm_folder();
    folder.config[key] = value;
    expect_import_refused(folder, reason);
  };
  refuse_timm("architecture", "vit_base_patch16_clip_224", "vit_base_patch16_clip_224");
  refuse_timm("architecture", "resnetblur50", "resnetblur50");
  refuse_timm("architecture", std::string(100'000, 'a'), "`architecture`");
  refuse_timm("model_args", {{"num_heads", 2}, {"act_layer", "relu"}}, "`act_layer`");
  refuse_timm("global_pool", "avg", "`global_pool`");
  refuse_timm("pretrained_cfg", {{"input_size", {3, 8, 9}}}, "`input_size`");
  refuse_timm("pretrained_cfg", {{"crop_mode", "border"}}, "`crop_mode`");
  refuse_timm("pretrained_cfg", {{"interpolation", "lanczos"}}, "`interpolation`");
}

TEST(ImportImage, AFolderWithoutAProcessorIsRefused) {
  const auto folder = resnet_folder();
  folder.write();
  std::filesystem::remove(*folder.dir / "preprocessor_config.json");
  const auto error = failure(ExitCode::kUsage, [&] { import_image(folder.dir->path()); });
  EXPECT_NE(error.message().find("preprocessor_config.json"), std::string::npos);
}

TEST(ImportImage, AModelOfPicturesHasNoEncoderAlone) {
  const auto folder = weights_alone(small_resnet());
  failure(ExitCode::kUsage,
          [&] { import_image(*folder.dir / "m.safetensors", {.encoder_only = true}); });
}

}  // namespace
}  // namespace stretto::interchange
