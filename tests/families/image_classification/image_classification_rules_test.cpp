#include "families/image_classification/image_classification_rules.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "experiment/preflight.h"
#include "experiment/rules.h"
#include "experiment/taken_values.h"
#include "families/image_classification/image_classification_options.h"
#include "families/image_classification/image_classification_taken.h"
#include "tests/families/image_classification/striped_pictures.h"

namespace stretto::experiment {
namespace {

class ImageClassificationRulesTest : public ::testing::Test {
 protected:
  ImageClassificationRulesTest() {
    testing::put_pictures(folder_, "train", 4);
    testing::put_pictures(folder_, "valid", 2, 10);
    e_.task.select("image_classification");
    e_.eval.best_metric = "accuracy";
    e_.train.max_steps = 100;
    e_.schedule.warmup_steps = 10;
    own().data.train = {(folder_ / "train").string()};
    own().data.valid = {(folder_ / "valid").string()};
    own().data.cache_dir = (folder_ / "cache").string();
    own().model.select("resnet");
    own().augment.image_size = 32;
  }

  ImageClassificationOptions& own() { return e_.task.as<ImageClassificationOptions>(); }

  /// What is wrong, as "key: what".
  std::vector<std::string> problems() const {
    std::vector<config::Problem> found;
    check_rules(e_, {}, found);
    std::vector<std::string> texts;
    for (const auto& problem : found) texts.push_back(problem.key + ": " + problem.what);
    return texts;
  }
  /// The keys alone.
  std::vector<std::string> blamed() const {
    std::vector<config::Problem> found;
    check_rules(e_, {}, found);
    std::vector<std::string> keys;
    for (const auto& problem : found) keys.push_back(problem.key);
    return keys;
  }
  /// What training would stop at, as "key: what".
  std::vector<std::string> stops() const {
    std::vector<std::string> found;
    for (const auto& stop : preflight(e_, {}, {}).stops) {
      found.push_back(stop.key + ": " + stop.what);
    }
    return found;
  }

  testing::TempDir folder_;
  Experiment e_;
};

using Texts = std::vector<std::string>;

TEST_F(ImageClassificationRulesTest, ASoundExperimentHasNoProblem) {
  EXPECT_EQ(problems(), Texts{});
  EXPECT_EQ(stops(), Texts{});
}

TEST_F(ImageClassificationRulesTest, OnePictureIsNoMicroBatchForBatchNorm) {
  own().data.max_samples = 1;
  EXPECT_EQ(blamed(), Texts{"data.max_samples"});
  e_.dist.batch_norm = "all";
  EXPECT_EQ(blamed(), Texts{});
  e_.dist.batch_norm = "worker";
  e_.train.freeze = {"*norm*"};
  EXPECT_EQ(blamed(), Texts{}) << "frozen norms take no mean";
  e_.train.freeze = {};
  own().model.select("vit");
  own().augment.image_size = 0;
  EXPECT_EQ(blamed(), Texts{});
}

TEST_F(ImageClassificationRulesTest, ALoneLastPictureIsFoundBeforeTraining) {
  own().data.max_samples = 11;  // of 12
  EXPECT_EQ(stops(),
            Texts{"data.max_samples: data.max_samples: the last micro-batch of an epoch of "
                  "12 pictures has one picture, of which batch norm has no variance"});
  own().data.drop_last = true;
  EXPECT_EQ(stops(), Texts{});
  own().data.drop_last = false;
  own().data.max_samples = 10;
  EXPECT_EQ(stops(), Texts{});
}

TEST_F(ImageClassificationRulesTest, AModelHasToTakeEachSize) {
  own().model.select("vit");  // patches of 16
  own().augment.image_size = 40;
  own().augment.test_size = 50;
  own().augment.train_sizes = {"0 32", "1 70"};
  EXPECT_EQ(blamed(), (Texts{"augment.image_size", "augment.test_size", "augment.train_sizes"}));
  own().augment.image_size = own().augment.test_size = 32;
  own().augment.train_sizes = {"1"};
  EXPECT_EQ(problems(), Texts{"augment.train_sizes: \"1\" is no epoch and size"});
}

TEST_F(ImageClassificationRulesTest, CopiesFitIntoAMicroBatch) {
  own().data.max_samples = 4;
  own().data.repeats = 5;
  EXPECT_EQ(blamed(), Texts{"data.repeats"});
}

TEST_F(ImageClassificationRulesTest, ClassesAreNamesOfOneLineEachOnce) {
  own().data.classes = {"columns", "grey", "columns"};
  EXPECT_EQ(problems(), Texts{"data.classes: class `columns` occurs twice"});
  own().data.classes = {"a\tb", "c"};
  EXPECT_EQ(blamed(), Texts{"data.classes"});
}

TEST_F(ImageClassificationRulesTest, AClassOfValidationAloneIsFoundBeforeTraining) {
  testing::put_picture(folder_, "valid", "spots", 1);
  const auto found = stops();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].substr(0, 12), "data.valid: ");
  EXPECT_NE(found[0].find("spots"), std::string::npos) << found[0];
}

TEST_F(ImageClassificationRulesTest, ALookWritesNothingUnlessTrainingFollows) {
  const auto& cache = own().data.cache_dir;
  EXPECT_TRUE(preflight(e_, {}, {}).stops.empty());
  EXPECT_TRUE(preflight(e_, {}, {.full = true}).stops.empty());
  EXPECT_FALSE(std::filesystem::exists(cache));
  image_classification_rules().look_at_files(e_, {}, {.keeps = true});
  EXPECT_TRUE(std::filesystem::exists(cache));
}

TEST_F(ImageClassificationRulesTest, ABadPictureStopsNothingUnlessAsked) {
  folder_.write("train/grey/bad.png", "no picture");
  EXPECT_EQ(stops(), Texts{});
  const auto doubts = preflight(e_, {}, {}).doubts;
  ASSERT_EQ(doubts.size(), 1U);
  EXPECT_EQ(doubts[0].key, "data.train");
  EXPECT_NE(doubts[0].what.find("left out: 1 bad sample"), std::string::npos) << doubts[0].what;
  EXPECT_NE(doubts[0].what.find("grey/bad.png"), std::string::npos) << doubts[0].what;
  own().data.bad_samples = "stop";
  ASSERT_EQ(stops().size(), 1U);
  EXPECT_NE(stops()[0].find("grey/bad.png"), std::string::npos);
}

TEST_F(ImageClassificationRulesTest, PicturesOfTrainingAndValidationAreDoubted) {
  EXPECT_TRUE(preflight(e_, {}, {}).doubts.empty());
  testing::put_pictures(folder_, "valid", 1);  // the first of training
  const auto doubts = preflight(e_, {}, {}).doubts;
  ASSERT_EQ(doubts.size(), 1U);
  EXPECT_EQ(doubts[0].key, "data.valid");
  EXPECT_NE(doubts[0].what.find("3 of 9"), std::string::npos) << doubts[0].what;
}

TEST_F(ImageClassificationRulesTest, FilesTellHowLargeAnEpochIs) {
  const auto sizes = image_classification_rules().file_sizes(e_);
  EXPECT_EQ(sizes.epoch, 12);
  EXPECT_EQ(sizes.classes, 3);
  EXPECT_EQ(sizes.validation, 6);
}

TEST_F(ImageClassificationRulesTest, ValidationOfACifarFolderIsItsTestFile) {
  const std::string record(3073, '\1');
  folder_.write("cifar/data_batch_1.bin", record + record + record);
  folder_.write("cifar/test_batch.bin", record);
  own().data.train = own().data.valid = {(folder_ / "cifar").string()};
  const auto sizes = image_classification_rules().file_sizes(e_);
  EXPECT_EQ(sizes.epoch, 3);
  EXPECT_EQ(sizes.validation, 1);
}

TEST_F(ImageClassificationRulesTest, ALongManifestIsLeftToTraining) {
  std::string rows = "path\tlabel\n";
  for (int i = 0; i < 5001; ++i) rows += "train/grey/0.png\tgrey\n";
  own().data.train = {folder_.write("list.tsv", rows)};
  const auto found = preflight(e_, {}, {});
  EXPECT_TRUE(found.stops.empty()) << "the one class of it is not looked at";
  ASSERT_FALSE(found.unread.empty());
  EXPECT_EQ(found.unread[0].key, "data.train");
  EXPECT_FALSE(preflight(e_, {}, {.full = true}).stops.empty());
}

TEST_F(ImageClassificationRulesTest, BatchNormAndZeroGammaAreThoseOfTheModel) {
  const auto& rules = image_classification_rules();
  EXPECT_TRUE(rules.has_batch_norm(e_));
  EXPECT_EQ(rules.zero_gain_key(e_), "model.zero_gamma");
  own().model.as<models::ResNetOptions>().version = "v2";
  EXPECT_EQ(rules.zero_gain_key(e_), "");
  own().model.select("vit");
  EXPECT_FALSE(rules.has_batch_norm(e_));
  EXPECT_EQ(rules.model_width(e_).key, "model.d_model");
}

// Values that `train.init_from` gives.

TEST_F(ImageClassificationRulesTest, AModelIsTakenUnlessAnotherOneIsStated) {
  OtherModel other{.options = e_, .tensors = {}, .name = "other"};
  auto& theirs = other.options.task.as<ImageClassificationOptions>();
  theirs.model.as<models::ResNetOptions>().preset = "resnet20";
  theirs.augment.mean = {0.5, 0.5, 0.5};
  const auto value_of = [](const std::vector<TakenValue>& values, const std::string& key) {
    for (const auto& value : values) {
      if (value.key == key) return value.value;
    }
    return std::string("none");
  };
  const auto taken = image_values_of(other, e_, {});
  EXPECT_EQ(value_of(taken, "model.preset"), "\"resnet20\"");
  EXPECT_EQ(value_of(taken, "augment.mean"), "[0.5, 0.5, 0.5]");
  EXPECT_EQ(value_of(taken, "augment.crop"), "none");
}

TEST_F(ImageClassificationRulesTest, WhatShapesHideIsCompared) {
  Experiment theirs = e_;
  EXPECT_TRUE(image_differences(theirs, e_).empty());
  theirs.task.as<ImageClassificationOptions>().augment.std = {1, 1, 1};
  const auto found = image_differences(theirs, e_);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().key, "augment.std");
}

TEST_F(ImageClassificationRulesTest, WhatPresetsSayIsComparedAsItCounts) {
  Experiment theirs = e_;
  auto& other = theirs.task.as<ImageClassificationOptions>().model;
  // As folders of `transformers` are read: every key is stated.
  other.as<models::ResNetOptions>() = {.preset = "none", .depth = 50, .version = "v1.5"};
  EXPECT_TRUE(image_differences(theirs, e_).empty());
  other.as<models::ResNetOptions>().version = "v1";
  const auto versions = image_differences(theirs, e_);
  ASSERT_EQ(versions.size(), 1U);
  EXPECT_EQ(versions[0].key + ": " + versions[0].theirs + ", " + versions[0].own,
            "model.version: \"v1\", \"v1.5\"");
  own().model.as<models::ResNetOptions>().preset = "resnet18";
  other.as<models::ResNetOptions>().depth = 18;
  EXPECT_TRUE(image_differences(theirs, e_).empty()) << "v1 and v1.5 of such blocks are the same";

  own().model.select("vit");
  own().model.as<models::VitOptions>().preset = "vit_small_patch16_224";
  other.select("vit");
  auto& vit = other.as<models::VitOptions>();
  vit.preset = "none";
  vit.num_heads = 6;
  EXPECT_TRUE(image_differences(theirs, e_).empty());
  vit.preset = "vit_tiny_patch16_224";  // of 3 heads
  vit.num_heads = 0;
  const auto heads = image_differences(theirs, e_);
  ASSERT_EQ(heads.size(), 1U);
  EXPECT_EQ(heads[0].key + ": " + heads[0].theirs + ", " + heads[0].own, "model.num_heads: 3, 6");
}

TEST_F(ImageClassificationRulesTest, WhatAirbenchsLogitsAreMultipliedByIsCompared) {
  own().model.select("airbench");
  Experiment theirs = e_;
  EXPECT_TRUE(image_differences(theirs, e_).empty());
  theirs.task.as<ImageClassificationOptions>().model.as<models::AirbenchOptions>().head_scale = 0.5;
  const auto found = image_differences(theirs, e_);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().key, "model.head_scale");
}

}  // namespace
}  // namespace stretto::experiment
