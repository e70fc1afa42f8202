#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace stretto {
namespace {

using stretto::testing::Program;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A folder with three questions, of which the last has no answer.
class AnswerLab : public Program {
 public:
  AnswerLab() {
    folder.write("one.json",
                 R"({"data": [{"paragraphs": [{"context": "The Seine is a river.", "qas": [
        {"id": "what", "question": "What is it?", "answers": [{"text": "a river", "answer_start": 13}]},
        {"id": "name", "question": "Its name?", "answers": [{"text": "The Seine", "answer_start": 0}]}
        ]}]}]})");
    folder.write("two.json", R"({"data": [{"paragraphs": [{"context": "x", "qas": [
        {"id": "none", "question": "Why?", "is_impossible": true, "answers": []}]}]}]})");
  }
};

TEST(ScoreOfAnswers, ReadsPredictionsFromStdinAndSpeaksJson) {
  const AnswerLab lab;
  const std::string predictions = R"({"name": "River Seine", "what": "RIVER!"})";
  const auto json = nlohmann::json::parse(
      lab.run({"score", "--metric", "squad1", "--reference", "one.json", "--json"}, predictions)
          .out);
  EXPECT_EQ(json["metric"], "squad1");
  EXPECT_EQ(json["exact_match"], 50);
  EXPECT_NEAR(json["f1"].get<double>(), 100 * (1 + 2.0 / 3) / 2, 1e-9);
  const auto text = lab.run(
      {"score", "--metric", "squad1", "--reference", "one.json", "--width", "1"}, predictions);
  EXPECT_EQ(text.out, "exact_match 50.0, f1 83.3 (2 questions)\n");
  EXPECT_EQ(text.err, "");
}

TEST(ScoreOfAnswers, TakesQuestionsOfSeveralFilesAndFindsThresholds) {
  const AnswerLab lab;
  lab.folder.write("na.json", R"({"name": 0.25, "what": 0.5, "none": 0.75})");
  lab.folder.write("predicted.json", R"({"name": "Seine", "what": "a river", "none": "x"})");
  const std::vector<std::string> words{"score",        "--metric",      "squad2",    "--reference",
                                       "one.json",     "two.json",      "--na-prob", "na.json",
                                       "--hypotheses", "predicted.json"};
  EXPECT_EQ(lab.run(words).out,
            "exact_match 66.67, f1 66.67 (3 questions)\n"
            "with an answer: exact_match 100.00, f1 100.00 (2 questions)\n"
            "without an answer: exact_match 0.00, f1 0.00 (1 question)\n"
            "best thresholds: exact_match 100.00 at 0.5, f1 100.00 at 0.5\n");
  auto strict = words;
  strict.insert(strict.end(), {"--na-prob-thresh", "0.6", "--json"});
  const auto json = nlohmann::json::parse(lab.run(strict).out);
  EXPECT_EQ(json["exact"], 100);
  EXPECT_EQ(json["best_exact_thresh"], 0.5);
}

TEST(ScoreOfAnswers, NamesMissingAndUnknownIds) {
  const AnswerLab lab;
  const auto result = lab.run({"score", "--metric", "squad1", "--reference", "one.json"},
                              R"({"what": "a river", "nmae": "Seine"})");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, "exact_match 50.00, f1 50.00 (2 questions)\n");
  EXPECT_EQ(result.err,
            "warning: 1 of 2 questions has no prediction and scores 0: name\n"
            "warning: stdin: 1 prediction belongs to no question and does not count: nmae\n");
  std::string many = "{\"what\": \"\"";
  for (int i = 0; i < 8; ++i) many += ", \"x" + std::to_string(i) + "\": \"\"";
  const auto counted =
      lab.run({"score", "--metric", "squad1", "--reference", "one.json"}, many + "}");
  EXPECT_TRUE(contains(counted.err,
                       "8 predictions belong to no question and do not count: x0, x1, "
                       "x2, x3, x4 and 3 more\n"))
      << counted.err;
}

TEST(ScoreOfAnswers, CountsCharactersWhereTold) {
  const AnswerLab lab;
  lab.folder.write("zh.json", R"({"data": [{"paragraphs": [{"context": "東京都", "qas": [
      {"id": "1", "question": "?", "answers": [{"text": "東京都", "answer_start": 0}]}]}]}]})");
  const std::vector<std::string> words{"score", "--metric", "squad1", "--reference", "zh.json"};
  auto apart = words;
  apart.insert(apart.end(), {"--answer-split", "cjk"});
  EXPECT_EQ(lab.run(words, R"({"1": "東京"})").out, "exact_match 0.00, f1 0.00 (1 question)\n");
  EXPECT_EQ(lab.run(apart, R"({"1": "東京"})").out, "exact_match 0.00, f1 80.00 (1 question)\n");
}

TEST(ScoreOfAnswers, RefusesWhatItCannotScore) {
  const AnswerLab lab;
  const auto fails = [&](const std::vector<std::string>& words, const std::string& input, int code,
                         const std::string& said) {
    std::vector<std::string> all{"score"};
    all.insert(all.end(), words.begin(), words.end());
    const auto result = lab.run(all, input);
    EXPECT_EQ(result.code, code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(contains(result.err, said)) << result.err;
  };
  fails({"--metric", "squad1", "--reference", "two.json"}, "{}", 65, "question none has no answer");
  fails({"--metric", "squad1", "--reference", "one.json"}, "[]", 65,
        "error: stdin: must be an object, is array\n");
  fails({"--metric", "squad1", "--reference", "gone.json"}, "{}", 2, "gone.json: no such file");
  fails({"--metric", "squad2", "--reference", "one.json", "one.json"}, "{}", 65,
        "another question has this id");
  fails({"--metric", "squad1", "--reference", "one.json", "--lowercase"}, "{}", 2,
        "error: stretto score: squad1 does not read --lowercase\n  --lowercase is for bleu");
  fails({"--metric", "squad1", "--reference", "one.json", "--na-prob", "one.json"}, "{}", 2,
        "squad1 does not read --na-prob\n  --na-prob is for squad2");
  fails({"--reference", "one.json", "--answer-split", "cjk"}, "x\n", 2,
        "bleu does not read --answer-split");
}

}  // namespace
}  // namespace stretto
