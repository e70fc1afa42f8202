#include "families/language_model/language_model_rules.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "experiment/experiment_schema.h"
#include "experiment/other_model.h"
#include "experiment/preflight.h"
#include "experiment/rules.h"
#include "families/language_model/language_model_display.h"
#include "families/language_model/language_model_plan.h"
#include "families/text/text_rules.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "text/tokenizer.h"

namespace stretto::experiment {
namespace {

using Keys = std::vector<std::string>;

class LanguageModelRulesTest : public ::testing::Test {
 protected:
  LanguageModelRulesTest() {
    experiment_.task = LanguageModelOptions{};
    experiment_.train.max_steps = 5000;
    own().data.train = {folder_.write("train.txt", text(200))};
    own().data.max_text_tokens = 64;
    own().tokenizer.type = "char";
  }
  static std::string text(int lines) {
    std::string text;
    for (int i = 0; i < lines; ++i) text += "a line of " + std::to_string(i) + "\n";
    return text;
  }
  LanguageModelOptions& own() { return experiment_.task.as<LanguageModelOptions>(); }
  models::CausalLstmModelOptions& choose_lstm() {
    own().model = models::CausalLstmModelOptions{};
    return own().model.as<models::CausalLstmModelOptions>();
  }
  models::CausalTransformerOptions& transformer() {
    return own().model.as<models::CausalTransformerOptions>();
  }
  /// Keys of what is wrong.
  Keys problems() {
    std::vector<config::Problem> found;
    check_rules(experiment_, {}, find_task_rules(experiment_), found);
    Keys keys;
    for (const auto& problem : found) keys.push_back(problem.key);
    return keys;
  }
  /// What `check` finds in the files.
  Preflight look() {
    const auto* rules = find_task_rules(experiment_);
    return rules->look_at_data(experiment_, {}, {.full = true});
  }

  testing::TempDir folder_;
  Experiment experiment_;
};

TEST_F(LanguageModelRulesTest, DefaultsAreSound) {
  EXPECT_EQ(problems(), Keys{});
  choose_lstm();
  EXPECT_EQ(problems(), Keys{});
}

TEST_F(LanguageModelRulesTest, ALossFromSamplesHasNoSmoothing) {
  own().loss.sampled_tokens = 100;
  EXPECT_EQ(problems(), Keys{});
  own().loss.label_smoothing = 0.1;
  EXPECT_EQ(problems(), Keys{"loss.sampled_tokens"});
  own().loss.label_smoothing = 0;
  transformer().logit_softcap = 30;
  EXPECT_EQ(problems(), Keys{});
}

TEST_F(LanguageModelRulesTest, GroupsOfTokensExcludeWhatNeedsOneSoftmax) {
  const std::string cutoffs = "model.adaptive_softmax.cutoffs";
  own().tokenizer.type = "word";
  own().tokenizer.vocab_size = 100;
  for (const bool recurrent : {false, true}) {
    SCOPED_TRACE(recurrent);
    models::AdaptiveOptions& groups =
        recurrent ? choose_lstm().adaptive_softmax : transformer().adaptive_softmax;
    if (recurrent) own().model.as<models::CausalLstmModelOptions>().output_bias = false;
    groups.cutoffs = {20, 98};
    EXPECT_EQ(problems(), Keys{});
    groups.cutoffs = {20, 99};
    EXPECT_EQ(problems(), Keys{cutoffs}) << "more tokens than the vocabulary has";
    own().tokenizer.model = folder_.write("words.txt", "a 1\n");
    EXPECT_EQ(problems(), Keys{}) << "of a tokenizer that is read nothing is known yet";
    own().tokenizer.model.clear();
    groups.cutoffs = {20, 10};
    EXPECT_EQ(problems(), Keys{cutoffs});
    groups.cutoffs = {20.5, 50};
    EXPECT_EQ(problems(), Keys{cutoffs});
    groups.cutoffs = {20, 50};
    own().loss.sampled_tokens = 10;
    EXPECT_EQ(problems(), Keys{"loss.sampled_tokens"});
    own().loss = {.label_smoothing = 0.1};
    EXPECT_EQ(problems(), Keys{"loss.label_smoothing"});
    own().loss = {};
  }
  own().model.as<models::CausalLstmModelOptions>().output_bias = true;
  EXPECT_EQ(problems(), Keys{"model.output_bias"});
  own().model = models::CausalTransformerOptions{};
  transformer().adaptive_softmax.cutoffs = {20};
  transformer().logit_softcap = 30;
  EXPECT_EQ(problems(), Keys{"model.logit_softcap"});
}

TEST_F(LanguageModelRulesTest, ATrainedVocabularyMayBeTooSmallForItsGroups) {
  own().tokenizer.type = "word";
  own().tokenizer.vocab_size = 5000;
  transformer().adaptive_softmax.cutoffs = {20, 100};
  EXPECT_EQ(problems(), Keys{});
  EXPECT_TRUE(look().stops.empty());
  // The text has 203 words, and there are four special tokens.
  transformer().adaptive_softmax.cutoffs = {20, 1000};
  const auto found = look();
  ASSERT_EQ(found.stops.size(), 1U);
  EXPECT_NE(found.stops[0].what.find("model.adaptive_softmax.cutoffs"), std::string::npos)
      << found.stops[0].what;
}

TEST_F(LanguageModelRulesTest, GroupsOfIdsThatAreNotInOrderAreDoubted) {
  transformer().adaptive_softmax.cutoffs = {5};
  auto found = look();
  EXPECT_TRUE(found.stops.empty());
  ASSERT_EQ(found.doubts.size(), 1U) << "characters are in the order of their code points";
  EXPECT_EQ(found.doubts[0].key, "model.adaptive_softmax.cutoffs");
  own().tokenizer.type = "word";
  EXPECT_EQ(doubt_of_groups(own()), "");
  own().tokenizer.type = "sentencepiece";
  EXPECT_NE(doubt_of_groups(own()), "");
  own().tokenizer.algorithm = "unigram";
  EXPECT_EQ(doubt_of_groups(own()), "");
  own().tokenizer.type = "byte_bpe";
  EXPECT_NE(doubt_of_groups(own()), "");
  transformer().adaptive_softmax.cutoffs.clear();
  EXPECT_EQ(doubt_of_groups(own()), "");
  own().loss.sampled_tokens = 5;
  EXPECT_NE(doubt_of_groups(own()).find("the tokens of a sampled softmax"), std::string::npos);
  found = look();
  ASSERT_FALSE(found.doubts.empty());
  EXPECT_EQ(found.doubts.back().key, "loss.sampled_tokens");
}

TEST_F(LanguageModelRulesTest, RowsOfGroupsAreNotMatchedWithAnotherVocabulary) {
  own().tokenizer.type = "word";
  experiment_.train.init_from = "other";
  experiment_.train.init_vocabulary = "match";
  transformer().adaptive_softmax.cutoffs = {20, 100};
  EXPECT_EQ(problems(), Keys{}) << "the table is tied";
  transformer().tie_embeddings = false;
  EXPECT_EQ(problems(), Keys{"train.init_vocabulary"});
  experiment_.train.init_only = {"decoder.*"};
  EXPECT_EQ(problems(), Keys{});
}

TEST_F(LanguageModelRulesTest, APlanHasTheGradientsOfGroups) {
  transformer().tie_embeddings = false;
  const TableRows rows{.input = 1000, .output = 1000};
  const auto plan = language_model_plan().tables.value();
  const auto whole = plan.gradients(experiment_, rows, /*rows_apart=*/false);
  EXPECT_EQ(whole.first_parameters, whole.late_parameters);
  transformer().adaptive_softmax.cutoffs = {100};
  const auto divided = plan.gradients(experiment_, rows, /*rows_apart=*/false);
  EXPECT_EQ(divided.late_parameters, whole.late_parameters);
  EXPECT_EQ(divided.first_parameters, 101 * 768 + 192 * (768 + 900));
}

TEST_F(LanguageModelRulesTest, SequencesAndWindowsFitThePositions) {
  transformer().max_positions = 32;
  EXPECT_EQ(problems(), Keys{"data.max_text_tokens"});
  own().data.max_text_tokens = 32;
  EXPECT_EQ(problems(), Keys{});
  own().eval.window = 33;
  EXPECT_EQ(problems(), Keys{"eval.window"});
  transformer().positions = "rotary";
  EXPECT_EQ(problems(), Keys{});
  own().eval.stride = 34;
  EXPECT_EQ(problems(), Keys{"eval.stride"});
  own().eval.stride = 33;
  EXPECT_EQ(problems(), Keys{});
  own().data.max_tokens = 31;
  EXPECT_EQ(problems(), Keys{"data.max_tokens"});
}

TEST_F(LanguageModelRulesTest, AnEmptyTextIsNoStopString) {
  own().decode.stop = {".", "\n"};
  EXPECT_EQ(problems(), Keys{});
  own().decode.stop = {".", ""};
  EXPECT_EQ(problems(), Keys{"decode.stop"});
}

TEST_F(LanguageModelRulesTest, TokensThatEndATextAreThoseOfTheTokenizer) {
  own().decode.end_tokens = {"a"};
  EXPECT_TRUE(look().stops.empty());
  own().decode.end_tokens = {"a", "<|im_end|>"};
  const auto found = look();
  ASSERT_FALSE(found.stops.empty());
  EXPECT_NE(found.stops[0].what.find("`<|im_end|>` is no token"), std::string::npos)
      << found.stops[0].what;
}

TEST_F(LanguageModelRulesTest, AMarkerIsALine) {
  own().data.documents = "marker";
  own().data.marker = "";
  EXPECT_EQ(problems(), Keys{"data.marker"});
  own().data.marker = "a\nb";
  EXPECT_EQ(problems(), Keys{"data.marker"});
  own().data.marker = "a";
  EXPECT_EQ(problems(), Keys{});
  own().data.format = "jsonl";
  own().data.key = "";
  EXPECT_EQ(problems(), Keys{"data.key"});
}

TEST_F(LanguageModelRulesTest, LanesAreCutIntoMicroBatches) {
  choose_lstm();
  own().data.lanes = 4;
  experiment_.train.update_freq = 4;
  EXPECT_EQ(problems(), Keys{});
  experiment_.train.update_freq = 5;
  EXPECT_EQ(problems(), Keys{"train.update_freq"});
}

TEST_F(LanguageModelRulesTest, AMicroBatchHasTheTokensOfItsLanes) {
  own().data.max_tokens = 4096;
  EXPECT_EQ(micro_batch_tokens(experiment_), 4096);
  choose_lstm();
  own().data.lanes = 20;
  own().data.bptt = 35;
  EXPECT_EQ(micro_batch_tokens(experiment_), 700);
  experiment_.train.update_freq = 3;
  EXPECT_EQ(micro_batch_tokens(experiment_), 7 * 35);
  EXPECT_EQ(find_task_rules(experiment_)->micro_batch(experiment_).value, 7 * 35);
  EXPECT_NEAR(language_model_plan().work(experiment_).units, 7 * 35, 1e-9);
}

TEST_F(LanguageModelRulesTest, AStateIsThatOfARecurrentModelAlone) {
  EXPECT_FALSE(find_task_rules(experiment_)->has_carry(experiment_));
  choose_lstm();
  EXPECT_TRUE(find_task_rules(experiment_)->has_carry(experiment_));
}

TEST_F(LanguageModelRulesTest, AWindowIsThatOfTrainingUnlessItIsGiven) {
  EXPECT_EQ(eval_window(own()).length, 64);
  EXPECT_EQ(eval_window(own()).stride, 64);
  own().eval.window = 128;
  own().eval.stride = 32;
  EXPECT_EQ(eval_window(own()).length, 128);
  EXPECT_EQ(eval_window(own()).stride, 32);
}

// What training would stop at.

TEST_F(LanguageModelRulesTest, SoundTextIsCountedInMicroBatches) {
  own().data.max_tokens = 128;
  const auto found = look();
  EXPECT_TRUE(found.stops.empty()) << found.stops.front().what;
  const auto tokens = static_cast<int64_t>(text(200).size()) + 1;
  EXPECT_EQ(found.most_batches, ((tokens + 63) / 64 + 1) / 2);
}

// A text has as many characters or words as it has: the vocabulary may be smaller than asked for.
TEST_F(LanguageModelRulesTest, AListOfCharactersMayBeShorterThanItsBound) {
  const auto unread = [&] {
    return find_task_rules(experiment_)->look_at_data(experiment_, {}, {}).unread;
  };
  for (const char* type : {"char", "word"}) {
    own().tokenizer.type = type;
    ASSERT_EQ(unread().size(), 1U) << type;
    EXPECT_EQ(unread()[0].key, "data.max_unknown") << type;
  }
  own().tokenizer.type = "byte_bpe";
  ASSERT_EQ(unread().size(), 1U);
  EXPECT_EQ(unread()[0].key, "tokenizer.vocab_size");
}

TEST_F(LanguageModelRulesTest, LanesThatTheTextDoesNotFillAreFoundBeforeTraining) {
  choose_lstm();
  own().data.lanes = 20;
  own().data.bptt = 500;
  auto found = look();
  ASSERT_EQ(found.stops.size(), 1U);
  EXPECT_EQ(found.stops[0].key, "data.train");
  EXPECT_NE(found.stops[0].what.find("data.bptt = 500"), std::string::npos) << found.stops[0].what;
  own().data.bptt = 50;
  EXPECT_TRUE(look().stops.empty());
  own().data.valid = {folder_.write("valid.txt", "a\n")};
  own().eval.lanes = 3;
  found = look();
  ASSERT_EQ(found.stops.size(), 1U);
  EXPECT_EQ(found.stops[0].key, "data.valid");
  EXPECT_NE(found.stops[0].what.find("eval.lanes = 3"), std::string::npos) << found.stops[0].what;
}

TEST_F(LanguageModelRulesTest, AnEndlessLineIsRefusedWhereLinesAreRead) {
  own().data.train = {folder_.write("one.txt", std::string(1'100'000, 'a'))};
  EXPECT_TRUE(look().stops.empty()) << "a document may have any length";
  own().data.format = "lines";
  const auto found = look();
  ASSERT_FALSE(found.stops.empty());
  EXPECT_EQ(found.stops[0].key, "data.train");
  EXPECT_NE(found.stops[0].what.find("one.txt:1"), std::string::npos) << found.stops[0].what;
}

TEST_F(LanguageModelRulesTest, JsonLinesAreLookedAt) {
  own().data.train = {folder_.write("a.jsonl", "{\"text\": \"a line\"}\n{\"body\": \"b\"}\n")};
  own().data.format = "jsonl";
  const auto found = look();
  ASSERT_FALSE(found.stops.empty());
  EXPECT_NE(found.stops[0].what.find("a.jsonl:2"), std::string::npos) << found.stops[0].what;
}

TEST_F(LanguageModelRulesTest, AFolderOfTextsMustHaveSome) {
  own().data.train = {(folder_.path() / "*.gz").string()};
  Experiment copy = experiment_;
  const auto missing = missing_files(experiment_schema(copy), {}, {}, /*only_overridden=*/false);
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].key, "data.train");
  EXPECT_NE(missing[0].what.find("is called *.gz"), std::string::npos) << missing[0].what;
  EXPECT_NE(missing[0].hint.find("folder/*.txt"), std::string::npos) << missing[0].hint;
}

TEST_F(LanguageModelRulesTest, AFileAFolderAndAnArchiveAreThereAndAnEmptyFolderIsNot) {
  const std::string folder = folder_.path().string();
  std::filesystem::create_directories(folder_ / "empty");
  own().data.train = {folder_.write("odd*.txt", "a line\n"),
                      folder,
                      folder_.write("a.zip", "") + ":What now?.txt",
                      folder + "/empty",
                      folder + "/gone.txt",
                      folder + "/gone.zip:a*.txt"};
  Experiment copy = experiment_;
  const auto missing = missing_files(experiment_schema(copy), {}, {}, /*only_overridden=*/false);
  std::vector<std::string> said;
  for (const auto& problem : missing) said.push_back(problem.what);
  EXPECT_EQ(said, (std::vector<std::string>{"no file lies in " + folder + "/empty",
                                            "no file " + folder + "/gone.txt",
                                            "no file " + folder + "/gone.zip"}));
}

TEST_F(LanguageModelRulesTest, JsonLinesThatAreReadAsTextAreDoubted) {
  own().data.train = {folder_.write("a.jsonl", "{\"text\": \"a line\"}\n")};
  const auto found = look();
  ASSERT_EQ(found.doubts.size(), 1U);
  EXPECT_EQ(found.doubts[0].key, "data.format");
  EXPECT_NE(found.doubts[0].what.find("a.jsonl"), std::string::npos) << found.doubts[0].what;
  own().data.format = "jsonl";
  EXPECT_TRUE(look().doubts.empty());
}

TEST_F(LanguageModelRulesTest, LinesThatLookBlankAreDoubtedAndNoStartLooksForThem) {
  own().data.train = {folder_.write("a.txt", "a line\n\u00A0\nanother\n")};
  const auto found = look();
  ASSERT_EQ(found.doubts.size(), 1U);
  EXPECT_EQ(found.doubts[0].what.find("1 line of "), 0U) << found.doubts[0].what;
  const auto* rules = find_task_rules(experiment_);
  EXPECT_TRUE(
      rules->look_at_files(experiment_, {}, {.full = true, .doubts = false}).doubts.empty());
}

TEST_F(LanguageModelRulesTest, AFileOfBlankLinesHasNoText) {
  own().data.train = {folder_.write("blank.txt", "\n\n\n")};
  own().data.format = "lines";
  ASSERT_FALSE(look().stops.empty());
}

// What `plan` asks.

TEST_F(LanguageModelRulesTest, IdsOfCharactersAndWordsAreThoseOfTheText) {
  const auto ids = [&] { return language_model_plan().tables->ids_of_text(experiment_); };
  own().data.train = {folder_.write("few.txt", "ab\nba\n")};
  ASSERT_TRUE(ids().has_value());
  EXPECT_LT(*ids(), 16) << "a, b, the line end and special tokens, and not tokenizer.vocab_size";
  const int64_t of_characters = *ids();
  own().data.train = {folder_.write("more.txt", "abc\nba\n")};
  EXPECT_EQ(ids().value(), of_characters + 1);
  own().tokenizer.type = "word";
  EXPECT_TRUE(ids().has_value());
  own().tokenizer.type = "byte_bpe";
  EXPECT_FALSE(ids().has_value()) << "as tokenizer.vocab_size says";
  own().tokenizer.type = "char";
  own().data.train = {(folder_.path() / "gone.txt").string()};
  EXPECT_FALSE(ids().has_value());
}

// Another run's model.

TEST_F(LanguageModelRulesTest, TheModelOfAnotherRunIsTakenOver) {
  transformer().preset = "nano";
  transformer().num_kv_heads = 2;
  const OtherModel other{.options = experiment_};
  Experiment mine;
  mine.task = LanguageModelOptions{};
  const auto* rules = find_task_rules(mine);
  const auto value = [&](const std::string& key) -> std::string {
    for (const auto& taken : rules->values_of_other_model(other, mine, {})) {
      if (taken.key == key) return taken.value;
    }
    return "none";
  };
  EXPECT_EQ(value("model.name"), "\"transformer\"");
  EXPECT_EQ(value("model.preset"), "\"nano\"");
  EXPECT_EQ(value("model.num_kv_heads"), "2");
  EXPECT_EQ(value("model.init"), "none");
  EXPECT_EQ(value("tokenizer.vocab_multiple"), "8");
  EXPECT_EQ(value("tokenizer.type"), "none");
}

TEST_F(LanguageModelRulesTest, WhatShapesDoNotShowIsADifference) {
  Experiment mine = experiment_;
  const auto* rules = find_task_rules(mine);
  EXPECT_TRUE(rules->hidden_differences(experiment_, mine, {}).empty());
  mine.task.as<LanguageModelOptions>().model.as<models::CausalTransformerOptions>().activation =
      "relu";
  const auto found = rules->hidden_differences(experiment_, mine, {});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].key, "model.activation");
  // The groups of another head count where it is taken.
  mine = experiment_;
  mine.task.as<LanguageModelOptions>()
      .model.as<models::CausalTransformerOptions>()
      .adaptive_softmax.cutoffs = {20};
  EXPECT_EQ(rules->hidden_differences(experiment_, mine, {}).size(), 1U);
  mine.train.init_only = {"decoder.*"};
  EXPECT_TRUE(rules
                  ->hidden_differences(experiment_, mine,
                                       {"decoder.layers.0.ffn.up.weight", "output.clusters"})
                  .empty());
  Experiment other;
  other.task.select("masked_lm");
  EXPECT_TRUE(rules->hidden_differences(other, mine, {}).empty());
}

TEST(LanguageModelScores, HaveOneByWhichBestGoes) {
  const auto ranking = ranking_scores(tasks::language_model_scores());
  ASSERT_FALSE(ranking.empty());
  EXPECT_EQ(ranking.front().name(), "nll");
}

}  // namespace
}  // namespace stretto::experiment
