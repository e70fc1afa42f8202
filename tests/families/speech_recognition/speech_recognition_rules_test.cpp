#include "families/speech_recognition/speech_recognition_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "experiment/preflight.h"
#include "experiment/rules.h"
#include "experiment/taken_values.h"
#include "families/speech_recognition/requests.h"
#include "families/speech_recognition/speech_facts.h"
#include "families/speech_recognition/speech_recognition_options.h"
#include "families/speech_recognition/speech_recognition_spec.h"
#include "families/speech_recognition/speech_recognition_taken.h"
#include "tests/base/failure.h"
#include "tests/families/speech_recognition/toned_words.h"

namespace stretto::experiment {
namespace {

using Texts = std::vector<std::string>;

class SpeechRecognitionRulesTest : public ::testing::Test {
 protected:
  SpeechRecognitionRulesTest() {
    testing::put_toned_words(folder_, "train", 8);
    testing::put_toned_words(folder_, "valid", 3, 20);
    e_.task.select("speech_recognition");
    e_.eval.best_metric = "wer";
    e_.train.max_steps = 100;
    e_.schedule.warmup_steps = 10;
    own().data.train = {(folder_ / "train.csv").string()};
    own().data.valid = {(folder_ / "valid.csv").string()};
    own().data.cache_dir = (folder_ / "cache").string();
    own().features.rate = testing::kTonedRate;
    own().features.num_mels = 24;
    own().model.select("wave2letter");
  }

  SpeechRecognitionOptions& own() { return e_.task.as<SpeechRecognitionOptions>(); }

  std::vector<config::Problem> problems() const {
    std::vector<config::Problem> found;
    check_rules(e_, {}, found);
    return found;
  }
  Texts blamed() const {
    Texts keys;
    for (const auto& problem : problems()) keys.push_back(problem.key);
    return keys;
  }
  /// Keys that training would stop at.
  Texts stops() const {
    Texts found;
    for (const auto& stop : preflight(e_, {}, {}).stops) {
      found.push_back(stop.key + ": " + stop.what);
    }
    return found;
  }
  Texts doubts() const {
    Texts found;
    for (const auto& doubt : preflight(e_, {}, {}).doubts) {
      found.push_back(doubt.key + ": " + doubt.what);
    }
    return found;
  }

  testing::TempDir folder_;
  Experiment e_;
};

TEST_F(SpeechRecognitionRulesTest, ASoundExperimentHasNoProblem) {
  EXPECT_EQ(blamed(), Texts{});
  EXPECT_EQ(stops(), Texts{});
  EXPECT_EQ(doubts(), Texts{});
}

TEST_F(SpeechRecognitionRulesTest, LimitsLeaveSomething) {
  own().data.min_seconds = 20;
  EXPECT_EQ(blamed(), Texts{"data.min_seconds"});
  own().data.max_seconds = 0;
  EXPECT_EQ(blamed(), Texts{});
}

TEST_F(SpeechRecognitionRulesTest, FeaturesDoNotContradictThemselves) {
  own().features.fft_size = 16;  // a window has 200 samples
  ASSERT_EQ(blamed().size(), 1u);
  EXPECT_EQ(blamed().front(), "features.fft_size");
}

TEST_F(SpeechRecognitionRulesTest, OneTextIsAllThatGreedyReadingHas) {
  own().decode.nbest = 3;
  EXPECT_EQ(blamed(), Texts{"decode.nbest"});
  own().decode.method = "beam";
  EXPECT_EQ(blamed(), Texts{});
  own().decode.beam_size = 2;
  EXPECT_EQ(blamed(), Texts{"decode.nbest"});
}

TEST_F(SpeechRecognitionRulesTest, AttentionWritesWhereThereIsADecoder) {
  own().decode.reader = "attention";
  EXPECT_EQ(blamed(), Texts{"decode.reader"});
  own().model.select("las");
  EXPECT_EQ(blamed(), Texts{});
  own().decode.lm = "model.arpa";
  EXPECT_EQ(blamed(), Texts{"decode.lm"});
  own().decode.lm.clear();
  own().decode.hot_words = {"stretto"};
  EXPECT_EQ(blamed(), Texts{"decode.hot_words"});
  own().decode.lm = "model.arpa";
  own().decode.reader = "ctc";
  own().decode.lm_run = "runs/characters";
  EXPECT_EQ(blamed(), Texts{"decode.lm_run"});
}

TEST_F(SpeechRecognitionRulesTest, AStreamHasOneTextWithoutAScoreInFront) {
  const auto message = [&](tasks::SpeechInferArguments asked) {
    asked.stream = true;
    return testing::failure(ExitCode::kUsage,
                            [&] { speech_recognition_spec().infer.check(e_, asked); })
        .message();
  };
  EXPECT_NE(message({.nbest = 3}).find("--nbest"), std::string::npos);
  EXPECT_NE(message({.scores = true}).find("--scores"), std::string::npos);
  EXPECT_NE(message({.log_probs = true}).find("--log-probs"), std::string::npos);
}

TEST_F(SpeechRecognitionRulesTest, ALabelHasNoLogProbabilitiesOfTokens) {
  tasks::SpeechInferArguments asked;
  asked.log_probs = true;
  const auto check = [&] { speech_recognition_spec().infer.check(e_, asked); };
  EXPECT_NO_THROW(check());
  own().loss.name = "label";
  testing::failure(ExitCode::kUsage, check);
}

TEST_F(SpeechRecognitionRulesTest, ALabelIsNotWrittenByAttention) {
  own().loss.name = "label";
  e_.eval.best_metric = "accuracy";
  EXPECT_EQ(blamed(), Texts{});
  own().model.select("las");
  EXPECT_EQ(blamed(), Texts{"model.decoder.weight"});
}

TEST_F(SpeechRecognitionRulesTest, ScoresAreErrorRatesOrAnAccuracy) {
  const auto names = [&] {
    Texts found;
    for (const auto& score : find_task_rules(e_)->scores(e_)) found.push_back(score.name());
    return found;
  };
  EXPECT_EQ(names(), (Texts{"loss", "wer", "cer"}));
  EXPECT_EQ(ranking_scores(find_task_rules(e_)->scores(e_)).front().name(), "wer");
  own().loss.name = "label";
  EXPECT_EQ(names(), (Texts{"loss", "accuracy"}));
}

TEST_F(SpeechRecognitionRulesTest, SoundsTooShortForTheirTextsAreTold) {
  folder_.write("train.csv",
                "wav_filename,transcript\ntrain_0.wav,ab\n"
                "train_1.wav," +
                    std::string(200, 'a') + "\n");
  const auto found = doubts();
  EXPECT_TRUE(std::ranges::any_of(found, [](const std::string& text) {
    return text.find("fewer frames than CTC needs") != std::string::npos;
  })) << (found.empty() ? "no doubt" : found.front());
}

TEST_F(SpeechRecognitionRulesTest, MissingSoundsAreAStop) {
  own().data.bad_samples = "stop";
  folder_.write("train.csv", "wav_filename,transcript\nnowhere.wav,ab\n");
  ASSERT_EQ(stops().size(), 1u);
  EXPECT_TRUE(stops().front().starts_with("data.train: "));
}

TEST_F(SpeechRecognitionRulesTest, ALabelNeedsTwoTexts) {
  own().loss.name = "label";
  e_.eval.best_metric = "accuracy";
  folder_.write("train.csv", "wav_filename,transcript\ntrain_0.wav,ab\n");
  folder_.write("valid.csv", "wav_filename,transcript\nvalid_0.wav,ab\n");
  ASSERT_EQ(stops().size(), 1u);
  EXPECT_NE(stops().front().find("1 labels"), std::string::npos) << stops().front();
}

TEST_F(SpeechRecognitionRulesTest, AnotherModelsFeaturesAreTakenAndCompared) {
  Experiment other = e_;
  other.task.as<SpeechRecognitionOptions>().features.rate = 16000;
  other.task.as<SpeechRecognitionOptions>().features.num_mels = 40;
  const auto taken = speech_values_of({.options = other, .tensors = {}, .name = ""}, e_, {});
  const auto found = std::ranges::find(taken, std::string("features.num_mels"), &TakenValue::key);
  ASSERT_NE(found, taken.end());
  EXPECT_EQ(found->value, "40");
  Texts keys;
  for (const auto& difference : speech_differences(other, e_)) keys.push_back(difference.key);
  EXPECT_EQ(keys, (Texts{"features.rate", "features.num_mels"}));
}

TEST_F(SpeechRecognitionRulesTest, AMiddlingUtteranceHasFramesByTheHop) {
  own().features.hop_seconds = 0.02;
  EXPECT_EQ(frames_per_second(own()), 50);
  own().data.max_seconds = 4;
  EXPECT_EQ(usual_frames(own()), 100);
}

TEST_F(SpeechRecognitionRulesTest, GroupsOfTheFirstBlockDivideFeatures) {
  auto& model = own().model.as<models::Wave2LetterOptions>();
  model.preset = "none";
  model.blocks = {{.channels = 10, .groups = 5}};
  EXPECT_EQ(std::ranges::count(blamed(), "model.blocks.0.groups"), 1) << "of 24 features";
  own().features.num_mels = 25;
  EXPECT_EQ(std::ranges::count(blamed(), "model.blocks.0.groups"), 0);
}

TEST_F(SpeechRecognitionRulesTest, SetsOfCommandsAreOfTheirFormatAndHaveLabels) {
  own().data.commands.set = "12";
  EXPECT_TRUE(std::ranges::count(blamed(), "data.commands.set") == 1) << "its classes are no texts";
  own().loss.name = "label";
  EXPECT_EQ(std::ranges::count(blamed(), "data.commands.set"), 0);
  own().data.format = "manifest";
  EXPECT_EQ(std::ranges::count(blamed(), "data.commands.set"), 1);
}

TEST_F(SpeechRecognitionRulesTest, ANetworkOfPicturesWritesNoTexts) {
  own().model.select("resnet");
  EXPECT_EQ(std::ranges::count(blamed(), "loss.name"), 1);
  own().loss.name = "label";
  EXPECT_EQ(std::ranges::count(blamed(), "loss.name"), 0);
}

}  // namespace
}  // namespace stretto::experiment
