#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "config/paths.h"
#include "families/translation/translation_options.h"
#include "lint/rules.h"
#include "tests/lint/sound_config.h"

namespace stretto::lint {
namespace {

using testing::codes_of;
using testing::lint_of;

TEST(LintOfARun, AValidationAfterEveryUpdateIsSaidSo) {
  const auto found = lint_of({"eval.every=1"});
  ASSERT_EQ(codes_of(found), std::vector<std::string>{"EV004"});
  EXPECT_NE(found[0].reason.find("validates every update may"), std::string::npos)
      << found[0].reason;
  const std::vector<std::string> epochs{"eval.every=1", "train.max_steps=0", "train.max_epochs=3"};
  EXPECT_EQ(codes_of(lint_of(epochs)), std::vector<std::string>{"EV004"});
  for (const auto& finding : lint_of(epochs, {.files = {.epoch = 250'000}})) {
    EXPECT_NE(finding.code, "EV004") << finding.reason;
  }
}

bool says_that_passes_are_equal(const experiment::Experiment& experiment) {
  Remarks remarks;
  rules::pulls_equal_passes(Subject(experiment, {}), remarks);
  return !remarks.empty();
}

/// The probabilities of a model, by their range: all but one drop something.
std::vector<config::Key> shares_of(experiment::Experiment& experiment) {
  std::vector<config::Key> shares;
  for (const auto& key : experiment::experiment_schema(experiment).keys) {
    const bool is_share = std::holds_alternative<double*>(key.value) && key.range.min == 0 &&
                          key.range.max == 1 && key.range.max_open;
    if (is_share && key.path.starts_with("model.")) shares.push_back(key);
  }
  return shares;
}

/// Sets each share of a model that drops nothing, one after the other.
void expect_every_dropout_is_seen(experiment::Experiment& experiment) {
  auto& own = translation_of(experiment);
  own.loss.r_drop = 5;
  own.model.lora.rank = 4;
  const auto shares = shares_of(experiment);
  for (const auto& key : shares) *std::get<double*>(key.value) = 0;
  EXPECT_TRUE(says_that_passes_are_equal(experiment));
  for (const auto& key : shares) {
    double& share = *std::get<double*>(key.value);
    share = 0.5;
    const bool of_transformers = config::section_above(key.path) == "model" && !key.readers.empty();
    const bool same_in_both = config::last_name(key.path) == "layer_drop" ||
                              (of_transformers && !models::has_transformer(own.model));
    EXPECT_EQ(says_that_passes_are_equal(experiment), same_in_both) << key.path;
    share = 0;
  }
}

TEST(LintOfARun, RDropSeesTheDropoutOfEveryPart) {
  for (const auto& encoder : models::EncoderChoice::names()) {
    for (const auto& decoder : models::DecoderChoice::names()) {
      SCOPED_TRACE(encoder + " and " + decoder);
      experiment::Experiment experiment;
      auto& model = translation_of(experiment).model;
      ASSERT_TRUE(model.encoder.select(encoder) && model.decoder.select(decoder));
      expect_every_dropout_is_seen(experiment);
    }
  }
}

TEST(LintOfARun, RDropSeesTheDropoutOfSeveralEncodersAndHeads) {
  experiment::Experiment experiment;
  auto& model = translation_of(experiment).model;
  model.encoders = {models::StackOptions{}, models::LstmEncoderOptions{}};
  model.heads.resize(2);
  model.heads[1].decoder = models::ConvDecoderOptions{};
  expect_every_dropout_is_seen(experiment);
}

TEST(LintOfARun, TheDropoutOfLoraCountsWithARank) {
  const auto noted = [](const std::vector<std::string>& overrides) {
    std::vector<std::string> all{"loss.r_drop=5", "model.dropout=0", "model.lora.dropout=0.1"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    const auto codes = codes_of(lint_of(all));
    return std::count(codes.begin(), codes.end(), "RG001") == 1;
  };
  EXPECT_FALSE(noted({"model.lora.rank=4"}));
  EXPECT_TRUE(noted({}));
}

}  // namespace
}  // namespace stretto::lint
