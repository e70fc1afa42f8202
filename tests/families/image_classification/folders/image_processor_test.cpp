#include "families/image_classification/folders/image_processor.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "image/views.h"
#include "interchange/config_reader.h"
#include "tests/base/failure.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;

ImagePreprocessing processor(const char* json) {
  return read_image_processor(ConfigReader(nlohmann::json::parse(json), "p.json"));
}

std::string refused_processor(const char* json) {
  return failure(ExitCode::kBadData, [&] { processor(json); }).message();
}

TEST(ImageProcessor, AResNetSeesTheMiddleOfSmallPicturesAndTheWholeOfLargeOnes) {
  const auto small = processor(R"({"image_processor_type": "ConvNextImageProcessor",
      "size": {"shortest_edge": 224}, "crop_pct": 0.95, "resample": 3,
      "image_mean": [0.5, 0.4, 0.3], "image_std": [1, 1, 1]})");
  EXPECT_EQ(small.mean, (std::vector<double>{0.5, 0.4, 0.3}));
  EXPECT_EQ(small.size, 224);
  EXPECT_EQ(small.resize, 235);
  EXPECT_FALSE(small.squashes);
  EXPECT_EQ(small.interpolation, "bicubic");
  EXPECT_TRUE(processor(R"({"image_processor_type": "ConvNextImageProcessorFast",
      "size": {"shortest_edge": 384}, "resample": 2, "do_normalize": false})")
                  .squashes);
}

TEST(ImageProcessor, AVisionTransformerSeesTheWholePicture) {
  for (const char* json :
       {R"({"size": 224})", R"({"image_processor_type": "ViTFeatureExtractor", "size": 224})",
        R"({"image_processor_type": "ViTImageProcessorFast",
                               "size": {"height": 224, "width": 224}})"}) {
    const auto pictures = processor(json);
    EXPECT_TRUE(pictures.squashes);
    EXPECT_EQ(pictures.size, 224);
    EXPECT_EQ(pictures.mean, (std::vector<double>{0.5, 0.5, 0.5}));
  }
}

TEST(ImageProcessor, AMiddleMayBeCutOut) {
  const auto pictures = processor(R"({"image_processor_type": "BitImageProcessor",
      "size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224},
      "do_center_crop": true, "do_normalize": false, "resample": 3})");
  EXPECT_EQ(pictures.resize, 256);
  EXPECT_EQ(pictures.size, 224);
  EXPECT_EQ(pictures.std, (std::vector<double>{1, 1, 1}));
}

TEST(ImageProcessor, WhatIsDoneOtherwiseHereIsRefused) {
  const auto expect_named = [](const char* json, const std::string& key) {
    const std::string message = refused_processor(json);
    EXPECT_NE(message.find("`" + key + "`"), std::string::npos) << message;
  };
  expect_named(R"({"size": 224, "do_resize": false})", "do_resize");
  expect_named(R"({"size": 224, "rescale_factor": 1})", "rescale_factor");
  expect_named(R"({"size": 224, "resample": 0})", "resample");
  expect_named(R"({"size": {"height": 224, "width": 100}})", "size");
  expect_named(R"({"size": {"shortest_edge": 224}})", "size");
  expect_named(R"({"size": 1e30})", "size");
  expect_named(R"({})", "size");
  expect_named(R"({"size": 224, "image_mean": [1, 2]})", "image_mean");
  expect_named(R"({"size": 224, "image_std": [1, 2, 0]})", "image_std");
  expect_named(R"({"size": 224, "image_processor_type": "DonutImageProcessor"})",
               "image_processor_type");
  // Its default differs between versions.
  expect_named(R"({"image_processor_type": "ConvNextImageProcessor", "size": 224})", "resample");
  expect_named(R"({"image_processor_type": "ConvNextImageProcessor", "size": 224, "resample": 3,
                   "image_mean": [1, 2, 3]})",
               "image_std");
  // DeiT changes proportions, and then cuts.
  expect_named(R"({"image_processor_type": "DeiTImageProcessor", "crop_size": 224,
                   "size": {"height": 256, "width": 256}})",
               "size");
  expect_named(R"({"image_processor_type": "BitImageProcessor", "crop_size": 224,
                   "size": {"shortest_edge": 200}})",
               "crop_size");
  expect_named(R"({"image_processor_type": "ConvNextImageProcessor", "size": 224, "crop_pct": 2})",
               "crop_pct");
}

TEST(ImageProcessor, WhatIsWrittenIsReadAgain) {
  const ImagePreprocessing middle{.size = 224, .resize = 235, .interpolation = "bicubic"};
  const ImagePreprocessing whole{
      .size = 32, .squashes = true, .mean = {0.5, 0.5, 0.5}, .std = {0.5, 0.25, 0.5}};
  EXPECT_EQ(processor(write_image_processor(middle, "resnet").c_str()), middle);
  EXPECT_EQ(processor(write_image_processor(middle, "vit").c_str()), middle);
  EXPECT_EQ(processor(write_image_processor(whole, "vit").c_str()), whole);
  EXPECT_EQ(processor_incompatibility(middle, "resnet"), "");
  EXPECT_NE(processor_incompatibility(whole, "resnet"), "");
}

// Readers round size / share down.
TEST(ImageProcessor, AShareGivesTheSideBack) {
  for (int64_t side = 1; side < 3000; ++side) {
    const ImagePreprocessing pictures{.size = 224, .resize = side};
    EXPECT_EQ(static_cast<int64_t>(224 / crop_share(pictures)), side);
  }
}

// `augment.test_resize` is empty: 8/7 of the size, rounded, is what the run evaluates.
TEST(ImageProcessor, TheUsualSideIsWrittenAsItIsEvaluated) {
  for (int64_t size = 8; size < 384; ++size) {
    const ImagePreprocessing pictures{.size = size};
    const int64_t side = image::default_test_resize(size);
    EXPECT_EQ(static_cast<int64_t>(static_cast<double>(size) / crop_share(pictures)), side);
    EXPECT_EQ(processor(write_image_processor(pictures, "resnet").c_str()).resize, side);
    EXPECT_EQ(processor(write_image_processor(pictures, "vit").c_str()).resize, side);
  }
}

}  // namespace
}  // namespace stretto::interchange
