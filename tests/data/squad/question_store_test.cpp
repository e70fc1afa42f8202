#include "data/squad/question_store.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "data/start_memory.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/data/squad/span_tokenizer.h"
#include "text/encoded_text.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kArticles = R"({"data": [
  {"title": "People", "paragraphs": [
    {"context": "anna lives in oslo.", "qas": [
      {"id": "a", "question": "who lives in oslo?",
       "answers": [{"text": "anna", "answer_start": 0}, {"text": "oslo", "answer_start": 14}]},
      {"id": "b", "question": "who lives?", "answers": [], "is_impossible": true}]},
    {"context": "who?", "qas": []}]},
  {"paragraphs": [
    {"context": "in oslo", "qas": [
      {"id": "c", "question": "in?", "answers": [{"text": "oslo", "answer_start": 3}]}]}]}]})";

class QuestionStoreTest : public ::testing::Test {
 protected:
  StoredQuestions open(const SquadReading& reading = {.require_answers = true}) const {
    return open_squad(paths_, reading, cache_);
  }
  std::vector<fs::path> stores() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(cache_.dir)) {
      if (entry.is_directory() && entry.path().filename() != "hashes") found.push_back(entry);
    }
    return found;
  }

  testing::TempDir folder_;
  const QuestionCache cache_{.dir = (folder_ / "cache").string(), .threads = 2};
  std::vector<std::string> paths_{folder_.write("a.json", kArticles)};
};

void expect_same(const SquadData& found, const SquadData& wanted) {
  ASSERT_EQ(found.paragraphs.size(), wanted.paragraphs.size());
  for (size_t i = 0; i < wanted.paragraphs.size(); ++i) {
    EXPECT_EQ(found.paragraphs[i].text, wanted.paragraphs[i].text);
    EXPECT_EQ(found.paragraphs[i].title, wanted.paragraphs[i].title);
  }
  ASSERT_EQ(found.questions.size(), wanted.questions.size());
  for (size_t i = 0; i < wanted.questions.size(); ++i) {
    const auto& one = found.questions[i];
    const auto& other = wanted.questions[i];
    EXPECT_EQ(one.id, other.id);
    EXPECT_EQ(one.text, other.text);
    EXPECT_EQ(one.paragraph, other.paragraph);
    EXPECT_EQ(one.is_impossible, other.is_impossible);
    ASSERT_EQ(one.answers.size(), other.answers.size());
    for (size_t k = 0; k < other.answers.size(); ++k) {
      EXPECT_EQ(one.answers[k].text, other.answers[k].text);
      EXPECT_EQ(one.answers[k].begin, other.answers[k].begin);
    }
  }
  EXPECT_EQ(found.skipped_answers, wanted.skipped_answers);
  EXPECT_EQ(found.skipped_questions, wanted.skipped_questions);
  EXPECT_EQ(found.bad.count, wanted.bad.count);
  EXPECT_EQ(found.bad.first, wanted.bad.first);
}

TEST_F(QuestionStoreTest, QuestionsOfTheCacheAreThoseOfTheFiles) {
  for (const bool found : {false, true}) {
    const auto questions = open();
    EXPECT_EQ(questions.from_cache, found);
    EXPECT_NE(questions.key, 0U);
    ASSERT_EQ(questions.data->questions.size(), 3U);
    expect_same(*questions.data, read_squad(paths_, {.require_answers = true}));
  }
}

TEST_F(QuestionStoreTest, WhatWasLeftOutIsKnownFromTheCacheToo) {
  paths_.push_back(folder_.write("b.json", R"({"data": [{"paragraphs": [{"context": "oslo", "qas": [
      {"id": "x", "question": "", "answers": [{"text": "oslo", "answer_start": 0}]},
      {"id": "y", "question": "who?", "answers": [{"text": "anna", "answer_start": 0}]},
      {"id": "z", "question": "in?", "answers": [{"text": "oslo", "answer_start": 0}]}]}]}]})"));
  const SquadReading reading{.bad_answers = BadAnswers::kSkip,
                             .require_answers = true,
                             .bad_samples = {.skips = true, .most = 5}};
  const SquadData wanted = read_squad(paths_, reading);
  ASSERT_EQ(wanted.bad.count, 1);
  ASSERT_EQ(wanted.skipped_questions, 1);
  expect_same(*open(reading).data, wanted);
  const auto again = open(reading);
  EXPECT_TRUE(again.from_cache);
  expect_same(*again.data, wanted);
  SquadReading none = reading;
  none.bad_samples.most = 0;
  testing::failure(ExitCode::kBadData, [&] { open(none); });
}

TEST_F(QuestionStoreTest, AreFoundByContentAndByHowTheyAreRead) {
  const uint64_t key = open().key;
  paths_ = {folder_.write("moved.json", kArticles)};
  EXPECT_TRUE(open().from_cache);
  EXPECT_NE(open({.bad_answers = BadAnswers::kSkip, .require_answers = true}).key, key);
  std::string other = kArticles;
  other.replace(other.find("anna lives"), 4, "Anna");
  paths_ = {folder_.write("moved.json", other)};
  testing::failure(ExitCode::kBadData, [&] { open(); });  // the answer is another one now
  const auto changed = open({.bad_answers = BadAnswers::kIgnore});
  EXPECT_FALSE(changed.from_cache);
  EXPECT_EQ(changed.data->paragraphs[0].text, "Anna lives in oslo.");
}

TEST_F(QuestionStoreTest, AStartHasThemOnce) {
  open();
  std::shared_ptr<const SquadData> first;
  {
    const StartMemory memory;
    first = open().data;
    EXPECT_EQ(open().data, first);
    const std::string moved = folder_.write("moved.json", kArticles);
    const auto elsewhere = open_squad(std::vector{moved}, {.require_answers = true}, cache_);
    EXPECT_NE(elsewhere.data, first) << "what is left out has another name";
    EXPECT_NE(open({.bad_answers = BadAnswers::kSkip}).data, first);
  }
  const auto next = open();
  EXPECT_NE(next.data, first);
  expect_same(*next.data, *first);
}

TEST_F(QuestionStoreTest, TokensOfTheCacheAreThoseOfTheTokenizer) {
  const auto tokenizer = testing::small_tokenizer();
  const auto questions = open();
  const auto wanted = tokenize_questions(*questions.data, *tokenizer);
  ASSERT_EQ(wanted.paragraphs.size(), 3U);
  EXPECT_EQ(wanted.paragraphs[0].ids, (std::vector<int64_t>{9, 6, 7, 8, 10}));
  for (int start = 0; start < 2; ++start) {
    const auto tokens = open_question_tokens(questions, *tokenizer, cache_);
    ASSERT_EQ(tokens.paragraphs.size(), wanted.paragraphs.size());
    for (size_t i = 0; i < wanted.paragraphs.size(); ++i) {
      EXPECT_EQ(tokens.paragraphs[i].ids, wanted.paragraphs[i].ids);
      EXPECT_EQ(tokens.paragraphs[i].code_points, wanted.paragraphs[i].code_points);
    }
    EXPECT_EQ(tokens.questions, wanted.questions);
    EXPECT_EQ(stores().size(), 2U);
  }
}

TEST_F(QuestionStoreTest, WindowsOfTheCacheAreThoseOfTheFiles) {
  const auto tokenizer = testing::small_tokenizer();
  const WindowOptions options{.max_tokens = 10, .stride = 2, .max_question_tokens = 5};
  const QuestionWindows wanted(read_squad(paths_), *tokenizer, options);
  for (int start = 0; start < 2; ++start) {
    auto questions = open({});
    auto tokens = open_question_tokens(questions, *tokenizer, cache_);
    const QuestionWindows found(std::move(questions.data), std::move(tokens),
                                text::template_of(*tokenizer), options);
    ASSERT_EQ(found.num_windows(), wanted.num_windows());
    for (int64_t i = 0; i < wanted.num_windows(); ++i) {
      Batch one = empty_window_batch(), other = empty_window_batch();
      found.append(i, one);
      wanted.append(i, other);
      EXPECT_EQ(one.column<int64_t>(kTokens).values, other.column<int64_t>(kTokens).values);
      EXPECT_EQ(one.column<int64_t>(kAnswerRows).values, other.column<int64_t>(kAnswerRows).values);
    }
  }
}

TEST_F(QuestionStoreTest, ADamagedStoreIsMadeAgain) {
  const auto tokenizer = testing::small_tokenizer();
  const auto wanted = tokenize_questions(*open().data, *tokenizer);
  open_question_tokens(open(), *tokenizer, cache_);
  for (const auto& store : stores()) {
    for (const auto& file : fs::directory_iterator(store)) fs::resize_file(file, 8);
  }
  const auto again = open();
  EXPECT_FALSE(again.from_cache);
  expect_same(*again.data, read_squad(paths_));
  EXPECT_EQ(open_question_tokens(again, *tokenizer, cache_).questions, wanted.questions);
  EXPECT_TRUE(open().from_cache);
}

TEST_F(QuestionStoreTest, WhereNothingCanBeKeptTheFilesAreRead) {
  const QuestionCache none{.dir = folder_.write("file", "") + "/cache"};
  const auto questions = open_squad(paths_, {}, none);
  EXPECT_EQ(questions.key, 0U);
  EXPECT_FALSE(questions.refusal.empty());
  expect_same(*questions.data, read_squad(paths_));
  const auto tokenizer = testing::small_tokenizer();
  EXPECT_EQ(open_question_tokens(questions, *tokenizer, none).questions,
            tokenize_questions(*questions.data, *tokenizer).questions);
}

TEST_F(QuestionStoreTest, MissingAndDamagedFilesAreToldAsByTheReader) {
  paths_ = {"/nowhere/a.json"};
  testing::failure(ExitCode::kUsage, [&] { open(); });
  paths_ = {folder_.write("half.json", "{\"data\": [")};
  const auto error = testing::failure(ExitCode::kBadData, [&] { open(); });
  EXPECT_NE(std::string(error.what()).find("half.json"), std::string::npos);
  EXPECT_TRUE(stores().empty());
}

}  // namespace
}  // namespace stretto::data
