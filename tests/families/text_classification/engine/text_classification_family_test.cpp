#include "families/text_classification/engine/text_classification_family.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/resolved.h"
#include "experiment/experiment_schema.h"
#include "experiment/preflight.h"
#include "families/text/engine/encoder_family.h"
#include "families/text/requests.h"
#include "store/run_record.h"
#include "tests/base/failure.h"
#include "tests/families/text_classification/engine/sentences.h"
#include "tests/train/toy_task.h"

namespace stretto::tasks {
namespace {

using stretto::testing::failure;
using train::test::events;

// Weights of a run with another head.

TEST_F(TextClassificationTest, AnotherRunsEncoderIsTakenAndItsHeadBeginsAnew) {
  train("labels", 60);
  experiment_.options.train.init_from = (folder_ / "labels").string();
  sections().data.label = "tags";
  sections().data.label_separator = ",";
  const auto assets = family_.first_assets(experiment_);
  EXPECT_EQ(nlohmann::json::parse(assets.at(kLabelsAsset)).size(), 3U);
  const auto setup = train("tags", 1);
  EXPECT_FALSE(events(setup, "train").empty());

  experiment::Preflight found;
  family_.check_weights({.experiment = experiment_, .weights = true}, found);
  EXPECT_TRUE(found.stops.empty()) << found.stops.front().what;
  encoder().num_layers = 2;
  family_.check_weights({.experiment = experiment_, .weights = true}, found);
  EXPECT_EQ(found.stops.size(), 1U);
}

TEST_F(TextClassificationTest, WhatShapesHideAndWhatTheyShowIsToldAtOnce) {
  const auto setup = train("labels", 3);
  auto other = experiment_.options;
  other.train.max_steps = 5000;
  folder_.write("labels/config.toml",
                store::seal_config(config::to_toml(experiment::experiment_schema(other)),
                                   setup.identity.run_id));
  experiment_.options.train.init_from = (folder_ / "labels").string();
  encoder().num_heads = 4;
  encoder().ffn_dim = 64;
  experiment::Preflight found;
  family_.check_weights({.experiment = experiment_, .weights = true}, found);
  ASSERT_EQ(found.stops.size(), 2U);
  EXPECT_NE(found.stops[0].what.find("model.num_heads: 2 there, 4 here"), std::string::npos)
      << found.stops[0].what;
  EXPECT_NE(found.stops[1].what.find("is [32, 16], the model wants [64, 16]"), std::string::npos)
      << found.stops[1].what;
}

TEST_F(TextClassificationTest, CheckLooksAtTextWithTheTokenizerThatIsTakenAlong) {
  train("labels", 3);
  experiment_.options.train.init_from = (folder_ / "labels").string();
  const auto look = [&] {
    experiment::Preflight found;
    family_.check_weights({.experiment = experiment_, .weights = true, .text = true, .full = true},
                          found);
    return found;
  };
  EXPECT_TRUE(look().stops.empty()) << look().stops.front().what;
  sections().data.train = {folder_.write("zh.tsv", "text\tlabel\n我们喜欢\tfood\n")};
  const auto found = look();
  ASSERT_EQ(found.stops.size(), 1U);
  EXPECT_EQ(found.stops[0].key, "data.train");
  EXPECT_EQ(found.stops[0].stage, experiment::Stage::kTraining);
  EXPECT_NE(found.stops[0].what.find("training text: 66.7 % of the tokens are unknown"),
            std::string::npos)
      << found.stops[0].what;
  sections().data.max_unknown = 1;
  EXPECT_TRUE(look().stops.empty());
}

TEST_F(TextClassificationTest, NamesOfOutputsAreThoseOfTheRunsLabels) {
  const auto assets = family_.first_assets(experiment_);
  const auto& family = dynamic_cast<const EncoderFamily&>(family_);
  EXPECT_EQ(family.output_names(assets), (std::vector<std::string>{"food", "vehicle"}));
  EXPECT_TRUE(family.output_names({}).empty());
  const auto task = family_.make_task(experiment_.options, assets, {});
  EXPECT_TRUE(task->assets().contains(kLabelsAsset));
}

TEST_F(TextClassificationTest, LabelsInAnotherRunsOrderAreTakenOver) {
  sections().data.labels = {"vehicle", "food"};
  train("reversed", 3);
  sections().data.labels.clear();
  experiment_.options.train.init_from = (folder_ / "reversed").string();
  EXPECT_EQ(nlohmann::json::parse(family_.first_assets(experiment_).at(kLabelsAsset)),
            (nlohmann::json{"vehicle", "food"}));
}

TEST_F(TextClassificationTest, AColumnThatIsHardlyTheLabelIsToldOf) {
  const auto told = [&](const std::string& text) {
    sections().data.train = {folder_.write("odd.tsv", "text\tlabel\n" + text)};
    ::testing::internal::CaptureStderr();
    family_.first_assets(experiment_);
    return ::testing::internal::GetCapturedStderr();
  };
  std::string alike, apart;
  for (int i = 0; i < 21; ++i) {
    alike += "anna likes a cake\tfood\n";
    apart += "anna likes a cake\tfood" + std::to_string(i / 2) + "\n";
  }
  EXPECT_NE(told(alike).find("21 texts with one label only"), std::string::npos);
  EXPECT_NE(told(apart).find("21 texts with 11 labels"), std::string::npos);
  EXPECT_EQ(told(apart + alike).find("warning: data.train"), std::string::npos);
}

TEST_F(TextClassificationTest, LabelsThatMayBeMeantAsOneAreToldOfWhenTrainingBegins) {
  std::string text = "text\tlabel\n";
  for (int i = 0; i < 21; ++i) {
    text +=
        "anna likes a cake\tFood\nben likes a bus\tfood\nben likes a car\t1\nanna likes a "
        "car\t01\n";
  }
  sections().data.train = {folder_.write("meant.tsv", text)};
  ::testing::internal::CaptureStderr();
  family_.first_assets(experiment_);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("data.train: labels `01` and `1` are one number"), std::string::npos) << said;
  EXPECT_NE(said.find("labels `Food` and `food` differ in case or white space alone"),
            std::string::npos)
      << said;
}

TEST_F(TextClassificationTest, AHeaderThatLooksLikeASampleIsToldOfOnceByRankZero) {
  const std::string all = rows(60, 3);
  // No field of the first line is called as a column is numbered.
  const std::string file = folder_.write(
      "bare.tsv", "anna likes a cake\teat it\tfood\t9\tfood\n" + all.substr(all.find('\n') + 1));
  sections().data.train = sections().data.valid = {file};
  sections().data.text = "1";
  sections().data.label = "3";
  const std::string said =
      "warning: " + file + ":1 looks like a sample, not like a header, and is not read; ";
  const auto told = [&](const std::function<void()>& look) {
    ::testing::internal::CaptureStderr();
    look();
    const std::string err = ::testing::internal::GetCapturedStderr();
    const size_t first = err.find(said);
    if (first == std::string::npos) return 0;
    return err.find(said, first + 1) == std::string::npos ? 1 : 2;
  };
  const auto task = make_task();
  EXPECT_EQ(told([&] { task->require_known_data(/*warn=*/true); }), 1);
  EXPECT_EQ(told([&] { task->require_known_data(/*warn=*/false); }), 0);
  train("bare", 1);
  EXPECT_EQ(told([&] { eval("bare"); }), 1);
  sections().data.header = false;
  EXPECT_EQ(told([&] { eval("bare"); }), 0);
}

TEST_F(TextClassificationTest, AModelWithoutAHeadIsRefused) {
  encoder().head = "none";
  const Error error = failure(ExitCode::kUsage, [&] { make_task(); });
  EXPECT_NE(std::string(error.what()).find("model.head"), std::string::npos) << error.what();
}

// What is asked of a model before it is made.

TEST_F(TextClassificationTest, NamesAndCostNeedNoWeights) {
  const auto names = family_.tensor_names(experiment_.options);
  const auto has = [&](const std::string& name) {
    return std::any_of(names.begin(), names.end(),
                       [&](const auto& one) { return one.name == name; });
  };
  for (const char* name : {"encoder.embedding.weight", "encoder.layers.0.self_attention.qkv.weight",
                           "head.output.weight", "head.output.bias"}) {
    EXPECT_TRUE(has(name)) << name;
  }
  const auto cost = family_.model_cost(
      {.experiment = experiment_.options, .sizes = TextSizes{.rows = 64, .tokens = 10}});
  EXPECT_GT(cost.parameters, 64 * 16);
  EXPECT_GT(cost.training_flops, 0);
}

// A WordPiece tokenizer gives the second text a segment of its own.
TEST_F(TextClassificationTest, ASegmentWithoutAVectorIsRefused) {
  encoder().num_segments = 1;
  make_task();  // of one text each
  sections().data.text2 = "text2";
  const auto error = failure(ExitCode::kUsage, [&] { make_task(); });
  EXPECT_EQ(std::string(error.what()).rfind("model.num_segments: ", 0), 0U) << error.what();
  EXPECT_NE(error.advice().find("model.num_segments = 2"), std::string::npos);
  for (const int64_t segments : {0, 2}) {
    encoder().num_segments = segments;
    make_task();
  }
}

}  // namespace
}  // namespace stretto::tasks
