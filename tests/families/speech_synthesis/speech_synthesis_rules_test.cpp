#include "families/speech_synthesis/speech_synthesis_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "experiment/preflight.h"
#include "experiment/rules.h"
#include "experiment/taken_values.h"
#include "families/speech_synthesis/speech_synthesis_options.h"
#include "families/speech_synthesis/speech_synthesis_taken.h"
#include "tests/families/speech_synthesis/small_clips.h"

namespace stretto::experiment {
namespace {

using Texts = std::vector<std::string>;

class SpeechSynthesisRulesTest : public ::testing::Test {
 protected:
  SpeechSynthesisRulesTest() {
    e_.task.select("speech_synthesis");
    e_.eval.best_metric = "mel_l1";
    e_.train.max_steps = 100;
    e_.schedule.warmup_steps = 10;
    own().data.train = {testing::put_clips(folder_, "train", testing::small_words(8))};
    own().data.valid = {testing::put_clips(folder_, "valid", testing::small_words(3, 20))};
    own().data.cache_dir = (folder_ / "cache").string();
  }

  SpeechSynthesisOptions& own() { return e_.task.as<SpeechSynthesisOptions>(); }

  /// The keys that are blamed.
  Texts blamed() const {
    std::vector<config::Problem> found;
    check_rules(e_, {}, found);
    Texts keys;
    for (const auto& problem : found) keys.push_back(problem.key);
    return keys;
  }
  /// What training would stop at, as "key: what".
  Texts stops() const {
    Texts found;
    for (const auto& stop : preflight(e_, {}, {}).stops) {
      found.push_back(stop.key + ": " + stop.what);
    }
    return found;
  }
  std::vector<Doubt> doubts() const { return preflight(e_, {}, {}).doubts; }

  testing::TempDir folder_;
  Experiment e_;
};

TEST_F(SpeechSynthesisRulesTest, ASoundExperimentHasNoProblem) {
  EXPECT_EQ(blamed(), Texts{});
  EXPECT_EQ(stops(), Texts{});
  EXPECT_TRUE(doubts().empty());
}

TEST_F(SpeechSynthesisRulesTest, FramesAreMelBandsThatASoundCanBeMadeOf) {
  own().features.kind = "mfcc";
  EXPECT_EQ(blamed(), Texts{"features.kind"});
  own().features.kind = "log_mel";
  own().features.normalise = "per_feature";
  EXPECT_EQ(blamed(), Texts{"features.normalise"});
  own().features.normalise = "none";
  own().features.fft_size = 256;  // below the window
  EXPECT_FALSE(blamed().empty());
}

TEST_F(SpeechSynthesisRulesTest, UnknownCharactersAreShown) {
  own().tokenizer.alphabet = "abcde ";
  const auto found = doubts();
  ASSERT_EQ(found.size(), 2U) << "of training and of validation";
  EXPECT_NE(found[0].what.find("`f`"), std::string::npos) << found[0].what;
  own().tokenizer.alphabet = "xyz";
  EXPECT_EQ(stops().size(), 2U);
}

TEST_F(SpeechSynthesisRulesTest, TrainingNeedsClips) {
  own().data.train.clear();
  EXPECT_EQ(blamed(), Texts{"data.train"});
}

TEST_F(SpeechSynthesisRulesTest, LimitsLeaveRoomForClips) {
  own().data.min_seconds = 5;
  own().data.max_seconds = 4;
  EXPECT_EQ(blamed(), Texts{"data.max_seconds"});
  own().data.max_seconds = 0;
  EXPECT_EQ(blamed(), Texts{});
}

TEST_F(SpeechSynthesisRulesTest, ASpeakerOfValidationAloneIsFoundBeforeTraining) {
  own().data.train = {
      testing::put_clips(folder_, "two", {{"abc", "deep"}, {"bcd", "high"}, {"cde", "deep"}})};
  own().data.valid = {testing::put_clips(folder_, "third", {{"abd", "deep"}, {"def", "other"}})};
  const auto found = stops();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].substr(0, 12), "data.valid: ");
  EXPECT_NE(found[0].find("`other` has no clip for training"), std::string::npos) << found[0];
}

TEST_F(SpeechSynthesisRulesTest, ClipsWithAndWithoutASpeakerAreFoundBeforeTraining) {
  own().data.train = {testing::put_clips(folder_, "mixed", {{"abc", "deep"}, {"bcd"}})};
  own().data.valid.clear();
  const auto found = stops();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].find("no speaker is named"), std::string::npos) << found[0];
}

TEST_F(SpeechSynthesisRulesTest, ABadClipStopsNothingUnlessAsked) {
  folder_.write("train_0.wav", "no sound");
  EXPECT_EQ(stops(), Texts{});
  ASSERT_EQ(doubts().size(), 1U);
  EXPECT_EQ(doubts()[0].key, "data.train");
  EXPECT_NE(doubts()[0].what.find("train_0.wav"), std::string::npos) << doubts()[0].what;
  own().data.bad_samples = "stop";
  EXPECT_EQ(stops().size(), 1U);
}

TEST_F(SpeechSynthesisRulesTest, ClipsOutsideTheLimitsAndSharedOnesAreDoubted) {
  own().data.min_seconds = 4 * testing::kLetterSeconds - 0.01;  // words of three letters
  const auto short_ones = doubts();
  ASSERT_EQ(short_ones.size(), 1U);
  EXPECT_NE(short_ones[0].what.find("3 utterances"), std::string::npos) << short_ones[0].what;
  own().data.min_seconds = 0.1;
  own().data.valid = own().data.train;
  const auto shared = doubts();
  ASSERT_EQ(shared.size(), 1U);
  EXPECT_EQ(shared[0].key, "data.valid");
}

TEST_F(SpeechSynthesisRulesTest, ALookWritesNothingUnlessTrainingFollows) {
  const auto& cache = own().data.cache_dir;
  preflight(e_, {}, {.full = true});
  EXPECT_FALSE(std::filesystem::exists(cache));
  speech_synthesis_rules().look_at_files(e_, {}, {.keeps = true});
  EXPECT_TRUE(std::filesystem::exists(cache));
}

TEST_F(SpeechSynthesisRulesTest, AMicroBatchIsBoundedBySeconds) {
  own().data.batch_seconds = 40.4;
  const auto bound = speech_synthesis_rules().micro_batch(e_);
  EXPECT_EQ(bound.key, "data.batch_seconds");
  EXPECT_EQ(bound.value, 40);
  EXPECT_EQ(speech_synthesis_rules().file_sizes(e_).validation, 3);
  EXPECT_TRUE(speech_synthesis_rules().has_batch_norm(e_));
}

TEST_F(SpeechSynthesisRulesTest, AModelAndItsFramesAreTakenAndTrimmingIsNot) {
  OtherModel other{.options = e_, .tensors = {}, .name = "other"};
  auto& theirs = other.options.task.as<SpeechSynthesisOptions>();
  theirs.features.num_mels = 40;
  theirs.features.trim_decibels = 30;
  theirs.model.as<models::Tacotron2Options>().reduction = 3;
  const auto taken = synthesis_values_of(other, e_, {});
  const auto value_of = [&](const std::string& key) {
    const auto found =
        std::ranges::find_if(taken, [&](const auto& value) { return value.key == key; });
    return found == taken.end() ? std::string("none") : found->value;
  };
  EXPECT_EQ(value_of("model.reduction"), "3");
  EXPECT_EQ(value_of("features.num_mels"), "40");
  EXPECT_EQ(value_of("features.trim_decibels"), "none");
}

TEST_F(SpeechSynthesisRulesTest, WhatShapesHideIsCompared) {
  Experiment theirs = e_;
  EXPECT_TRUE(synthesis_differences(theirs, e_).empty());
  theirs.task.as<SpeechSynthesisOptions>().features.floor = 1e-2;
  const auto found = synthesis_differences(theirs, e_);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().key, "features.floor");
}

}  // namespace
}  // namespace stretto::experiment
