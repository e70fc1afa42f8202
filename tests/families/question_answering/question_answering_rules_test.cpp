#include "families/question_answering/question_answering_rules.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "experiment/preflight.h"
#include "experiment/rules.h"
#include "families/question_answering/question_data.h"
#include "families/text/prepared_text.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "text/tokenizer.h"

namespace stretto::experiment {
namespace {

Experiment sound_questions() {
  Experiment e;
  e.task.select("question_answering");
  questions_of(e).data.train = {"/train.json"};
  questions_of(e).data.valid = {"/valid.json"};
  e.train.max_steps = 100;
  e.schedule.warmup_steps = 10;
  e.eval.best_metric = "f1";
  return e;
}

/// The one problem that a change makes, as "place: what".
std::string question_problem(const std::function<void(Experiment&)>& change) {
  Experiment e = sound_questions();
  change(e);
  std::vector<config::Problem> problems;
  check_rules(e, {}, problems);
  if (problems.size() != 1) return std::to_string(problems.size()) + " problems";
  EXPECT_FALSE(problems[0].hint.empty()) << problems[0].what;
  return problems[0].place + ": " + problems[0].what;
}

TEST(QuestionAnsweringRules, ASoundExperimentBreaksNone) {
  EXPECT_EQ(question_problem([](Experiment&) {}), "0 problems");
}

TEST(QuestionAnsweringRules, ATokenizerKnowsTheOffsetsOfItsPieces) {
  const auto problem =
      question_problem([](Experiment& e) { questions_of(e).tokenizer.type = "sentencepiece"; });
  EXPECT_NE(problem.find("some pieces an empty place"), std::string::npos) << problem;
}

// A model that is named as tokenizer.model is what it is, whatever tokenizer.type says.
TEST(QuestionAnsweringRules, ASentencePieceModelOfAnyTypeIsRefused) {
  const stretto::testing::TempDir dir;
  const std::string model = text::train_sentencepiece(
      {"the red house", "the blue dog", "a red dog"}, {.vocab_size = 24, .num_threads = 1});
  Experiment e = sound_questions();
  questions_of(e).data.train = questions_of(e).data.valid = {};
  questions_of(e).tokenizer.model = dir.write("spm.model", model);
  const auto found = find_task_rules(e)->look_at_files(e, {}, {});
  ASSERT_EQ(found.stops.size(), 1U);
  EXPECT_EQ(found.stops[0].key, "tokenizer.model");
  EXPECT_EQ(found.stops[0].code, ExitCode::kUsage);
  EXPECT_EQ(found.stops[0].what.find("the tokenizer is a SentencePiece model, which gives some"),
            0U);
}

TEST(QuestionAnsweringRules, AQuestionLeavesRoomForItsParagraph) {
  const auto problem = question_problem([](Experiment& e) {
    questions_of(e).data.max_text_tokens = 64;
    questions_of(e).data.max_question_tokens = 60;
    questions_of(e).data.stride = 1;
  });
  EXPECT_NE(problem.find("leaves no room"), std::string::npos) << problem;
}

TEST(QuestionAnsweringRules, WindowsLeaveNoGap) {
  const auto problem =
      question_problem([](Experiment& e) { questions_of(e).data.stride = 384 - 64 - 3; });
  EXPECT_NE(problem.find("apart"), std::string::npos) << problem;
}

class QuestionData : public ::testing::Test {
 protected:
  QuestionData() { questions_of(e_).data.cache_dir = (folder_ / "cache").string(); }
  std::string write(const std::string& answer, bool is_impossible) {
    return folder_.write(
        "data.json", R"({"data": [{"paragraphs": [{"context": "In Oslo.", "qas": [)"
                     R"({"id": "q", "question": "Where?", "answers": [)" +
                         answer + R"(], "is_impossible": )" + (is_impossible ? "true" : "false") +
                         "}]}]}]}");
  }
  static constexpr const char* kOslo = R"({"text": "Oslo", "answer_start": 3})";
  static constexpr const char* kElsewhere = R"({"text": "Oslo", "answer_start": 30})";

  testing::TempDir folder_;
  Experiment e_ = sound_questions();
};

TEST_F(QuestionData, AnswersOutsideTheirParagraphAreRefusedWithTheirPlace) {
  const auto error =
      testing::failure(ExitCode::kBadData, [&] { read_questions(e_, {write(kElsewhere, false)}); });
  EXPECT_NE(std::string(error.what()).find("data.json"), std::string::npos);
  EXPECT_NE(std::string(error.what()).find("question q"), std::string::npos);
  EXPECT_NE(std::string(error.what()).find("outside its paragraph"), std::string::npos);
}

TEST_F(QuestionData, AQuestionWithoutAnswersIsImpossibleOrRefused) {
  testing::failure(ExitCode::kBadData, [&] { read_questions(e_, {write("", false)}); });
  EXPECT_TRUE(has_impossible(read_questions(e_, {write("", true)})));
}

TEST_F(QuestionData, ImpossibleQuestionsAreThoseOfVersion2) {
  const auto file = write("", true);
  EXPECT_EQ(squad_version(e_, true), metrics::SquadVersion::kV2);
  EXPECT_EQ(squad_version(e_, false), metrics::SquadVersion::kV1);
  questions_of(e_).data.version = "2";
  EXPECT_EQ(squad_version(e_, false), metrics::SquadVersion::kV2);
  questions_of(e_).data.version = "1";
  const auto error = testing::failure(ExitCode::kBadData, [&] { read_questions(e_, {file}); });
  EXPECT_NE(std::string(error.what()).find("data.version"), std::string::npos);
}

TEST_F(QuestionData, CheckFindsWhatTrainingWouldStopAt) {
  questions_of(e_).data.train = {write(kElsewhere, false)};
  questions_of(e_).data.valid.clear();
  const auto found = question_preflight(e_, {}, {});
  ASSERT_EQ(found.stops.size(), 1u);
  EXPECT_EQ(found.stops[0].key, "data.train");
  EXPECT_EQ(found.stops[0].code, ExitCode::kBadData);
  questions_of(e_).data.train = {write(kOslo, false)};
  EXPECT_TRUE(question_preflight(e_, {}, {}).stops.empty());
}

TEST_F(QuestionData, FilesThatOnlyTheOtherMachineHasAreNamed) {
  const auto found = question_preflight(e_, {}, {.elsewhere = true});
  EXPECT_TRUE(found.stops.empty());
  ASSERT_EQ(found.unread.size(), 2u);
  EXPECT_EQ(found.unread[0].what, "/train.json");
}

TEST_F(QuestionData, GivesATokenizerParagraphsAndQuestions) {
  questions_of(e_).data.train = {write(kElsewhere, false)};
  QuestionText text([&] {
    return data::StoredQuestions{
        .data = std::make_shared<const data::SquadData>(read_training_text(e_))};
  });
  std::vector<std::string> lines;
  for (std::string line; text.next(line);) lines.push_back(line);
  EXPECT_EQ(lines, (std::vector<std::string>{"In Oslo.", "Where?"}));
}

TEST_F(QuestionData, WhatTrainingOpensIsPrepared) {
  auto& own = questions_of(e_);
  own.data.train = own.data.valid = {write(kOslo, false)};
  own.tokenizer.vocab_size = 60;
  prepare_data(e_);
  const auto questions = open_training_text(e_);
  EXPECT_TRUE(questions.from_cache);
  QuestionText text([&] { return questions; });
  EXPECT_EQ(text.key(), questions.key);
  const auto num_stores = [&] {
    int64_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(own.data.cache_dir)) {
      count += entry.is_directory() ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(num_stores(), 4) << "hashes; questions, tokens and a tokenizer";
  const auto tokenizer = prepared_tokenizer(e_, text);
  std::string line;
  EXPECT_TRUE(text.next(line)) << "the tokenizer is trained again";
  EXPECT_EQ(line, "In Oslo.");
  open_windows(e_, own.data.train, *tokenizer);
  EXPECT_EQ(num_stores(), 4) << "tokens are made again";
}

}  // namespace
}  // namespace stretto::experiment
