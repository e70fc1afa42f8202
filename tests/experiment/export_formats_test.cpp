#include "experiment/export_formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "experiment/family_spec.h"
#include "tests/base/failure.h"

namespace stretto::experiment {
namespace {

using stretto::testing::failure;

std::vector<std::string> format_names(const std::vector<ExportFormat>& formats) {
  std::vector<std::string> names;
  for (const auto& format : formats) names.push_back(format.name);
  return names;
}

Experiment with_task(const std::string& name) {
  Experiment experiment;
  EXPECT_TRUE(experiment.task.select(name));
  return experiment;
}

ExportFormat known_format(const std::string& name) {
  const auto known = known_export_formats();
  return *std::ranges::find(known, name, &ExportFormat::name);
}

TEST(ExportFormats, AreThoseOfAllFamiliesEachOnce) {
  EXPECT_EQ(format_names(known_export_formats()),
            (std::vector<std::string>{"hf", "timm", "torchvision", "ctranslate2", "onnx", "gguf",
                                      "safetensors"}));
}

TEST(ExportFormats, SayForWhichModelsTheyAre) {
  EXPECT_EQ(known_format("ctranslate2").models, "Transformers of two stacks and language models");
  EXPECT_EQ(known_format("onnx").models, "encoders of text") << "several families say the same";
}

TEST(ExportFormats, OfOneNameAreAlikeInAllFamilies) {
  for (const auto& family : families()) {
    std::set<std::string> names;
    for (const auto& format : family.formats) {
      const auto same = known_format(format.name);
      EXPECT_TRUE(names.insert(format.name).second) << format.name;
      EXPECT_EQ(format.weights, same.weights) << format.name;
      EXPECT_EQ(format.has_classes, same.has_classes) << format.name;
      EXPECT_EQ(format.is_file, same.is_file) << format.name;
      ASSERT_FALSE(format.weights.empty()) << format.name;
      EXPECT_NE(format.name, kSafetensorsFormat) << "it is written of any model";
    }
  }
}

TEST(ExportFormats, OfATaskAreThoseOfItsFamily) {
  EXPECT_EQ(format_names(export_formats_of(with_task("translation"))),
            (std::vector<std::string>{"hf", "ctranslate2", "safetensors"}));
  EXPECT_EQ(format_names(export_formats_of(with_task("speech_synthesis"))),
            (std::vector<std::string>{"safetensors"}));
  EXPECT_TRUE(export_format_of(with_task("language_model"), "gguf").is_file);
  const auto error =
      failure(ExitCode::kUsage, [] { export_format_of(with_task("masked_lm"), "gguf"); });
  EXPECT_NE(error.message().find("--format gguf: a model of masked_lm"), std::string::npos);
  EXPECT_NE(error.message().find("formats for it: hf, onnx, safetensors"), std::string::npos);
}

}  // namespace
}  // namespace stretto::experiment
