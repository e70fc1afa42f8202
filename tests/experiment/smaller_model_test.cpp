// The settings of a model that parts were taken out of.
#include "experiment/smaller_model.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "experiment/experiment_schema.h"
#include "families/translation/translation_options.h"

namespace stretto::experiment {
namespace {

using compress::StackShape;

Experiment experiment_of(const std::string& name) {
  Experiment experiment;
  experiment.task.select(name);
  return experiment;
}

std::vector<SizeSetting> settings_of(const std::string& name, const StackShape& now,
                                     const StackShape& left) {
  return smaller_model_settings(experiment_of(name), now, left);
}

std::string refusal_of(const std::string& name, const StackShape& now, const StackShape& left) {
  try {
    settings_of(name, now, left);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "";
}

StackShape six_layers(const std::string& prefix) {
  return {.prefix = prefix,
          .num_layers = 6,
          .ffn_dim = 2048,
          .num_heads = 8,
          .num_kv_heads = 8,
          .head_dim = 64};
}

TEST(SmallerModel, TheSectionOfItsStackSaysIt) {
  StackShape left = six_layers("encoder.");
  left.num_layers = 4;
  left.ffn_dim = 1024;
  EXPECT_EQ(
      settings_of("translation", six_layers("encoder."), left),
      (std::vector<SizeSetting>{{"model.encoder.num_layers", 4}, {"model.encoder.ffn_dim", 1024}}));
  EXPECT_EQ(settings_of("masked_lm", six_layers("encoder."), left),
            (std::vector<SizeSetting>{{"model.num_layers", 4}, {"model.ffn_dim", 1024}}));
  EXPECT_TRUE(settings_of("masked_lm", six_layers("encoder."), six_layers("encoder.")).empty());
}

TEST(SmallerModel, HeadsKeepTheirWidth) {
  StackShape left = six_layers("encoder.");
  left.num_heads = left.num_kv_heads = 6;
  EXPECT_EQ(settings_of("masked_lm", six_layers("encoder."), left),
            (std::vector<SizeSetting>{{"model.num_heads", 6}, {"model.head_dim", 64}}));
  EXPECT_EQ(
      settings_of("translation", six_layers("encoder."), left),
      (std::vector<SizeSetting>{{"model.encoder.num_heads", 6}, {"model.encoder.head_dim", 64}}));
  left.prefix = "decoder.";
  EXPECT_EQ(settings_of("language_model", six_layers("decoder."), left),
            (std::vector<SizeSetting>{{"model.num_heads", 6}, {"model.head_dim", 64}}));
}

TEST(SmallerModel, TheSettingsDescribeIt) {
  StackShape left = six_layers("encoder.");
  left.ffn_dim = 1024;
  const Experiment own = experiment_of("masked_lm");
  const Experiment smaller =
      with_sizes(own, smaller_model_settings(own, six_layers("encoder."), left));
  EXPECT_EQ(changed_keys(smaller, [](const std::string& key) { return key == "model.ffn_dim"; }),
            (std::vector<std::string>{"model.ffn_dim"}));
}

TEST(SmallerModel, WhatNoKeySaysIsRefused) {
  StackShape left = six_layers("encoder.");
  left.num_heads = left.num_kv_heads = 6;
  Experiment alibi = experiment_of("translation");
  translation_of(alibi).model.positions = "alibi";
  try {
    smaller_model_settings(alibi, six_layers("encoder."), left);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("depends on the number of a head"), std::string::npos);
  }
  EXPECT_NE(refusal_of("image_classification", six_layers(""), left)
                .find("[model] has no key for the number of its layers"),
            std::string::npos);
}

}  // namespace
}  // namespace stretto::experiment
