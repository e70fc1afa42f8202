// Real files of SQuAD's format: what they hold, and scores of made-up predictions, compared with
// what transformers 4.57.6 gave (its SQuAD 2.0 metric; for 1.1, F1 of no words is 0).
#include "metrics/squad.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "data/squad/squad_file.h"

namespace stretto {
namespace {

struct RealFile {
  const char* name;
  size_t paragraphs, questions;
  double exact_match, f1;  ///< squad1
};

const RealFile kFiles[] = {
    {"xquad/xquad.en.json.gz", 120, 632, 61.075949367088604, 94.635723699468},
    {"xquad/xquad.de.json.gz", 120, 632, 64.24050632911393, 95.73300645140036},
    {"xquad/xquad.hi.json.gz", 120, 632, 60.91772151898734, 95.37236712845423},
    {"xquad/xquad.ar.json.gz", 120, 632, 54.43037974683544, 94.30453430624921},
    {"xquad/xquad.zh.json.gz", 120, 632, 93.67088607594937, 99.17308078700485},
    {"policyqa/dev.json.gz", 574, 3809, 41.480703596744554, 96.36154785699148},
    {"qamr/derived_squad_format_dev.json.gz", 499, 18863, 70.68864973758151, 95.61055002766135},
    {"jaquad/jaquad_dev_0000.json.gz", 407, 1029, 100, 100},
};

class RealSquad : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* shared = std::getenv("STRETTO_SHARED");
    if (shared == nullptr) GTEST_SKIP() << "STRETTO_SHARED names no folder with data";
    folder_ = std::filesystem::path(shared) / "data";
    if (!std::filesystem::exists(folder_ / "xquad")) GTEST_SKIP() << folder_ << " has no xquad";
  }

  data::SquadData read(const std::string& name, const data::SquadReading& reading = {}) const {
    return data::read_squad(std::vector<std::string>{(folder_ / name).string()}, reading);
  }

  std::filesystem::path folder_;
};

/// The last answer with its last word dropped, as it is, or backwards; of none, "" or "x".
std::string made_up(size_t index, const data::SquadQuestion& question) {
  if (question.answers.empty()) return index % 2 == 0 ? "" : "x";
  auto words = split(question.answers.back().text, ' ');
  if (index % 3 == 0 && words.size() > 1) {
    words.pop_back();
  } else if (index % 3 != 1) {
    std::reverse(words.begin(), words.end());
    words.insert(words.begin(), "the");
  }
  return join(words, " ");
}

struct Rows {
  std::vector<metrics::AnsweredQuestion> questions;
  std::vector<metrics::PredictedAnswer> predictions;
  std::vector<metrics::NoAnswerProbability> no_answer;
};

Rows rows_of(const data::SquadData& data) {
  Rows rows;
  for (size_t i = 0; i < data.questions.size(); ++i) {
    const auto& question = data.questions[i];
    metrics::AnsweredQuestion answered{.id = question.id, .answers = {}};
    for (const auto& answer : question.answers) answered.answers.push_back(answer.text);
    rows.questions.push_back(std::move(answered));
    rows.predictions.push_back({.id = question.id, .text = made_up(i, question)});
    rows.no_answer.push_back(
        {.id = question.id, .probability = static_cast<double>(i * 7919 % 1000) / 1000});
  }
  return rows;
}

TEST_F(RealSquad, OfVersion11HasEveryAnswerInPlaceAndTheScoresOfTransformers) {
  for (const auto& file : kFiles) {
    SCOPED_TRACE(file.name);
    const auto data = read(file.name, {.require_answers = true});
    EXPECT_EQ(data.paragraphs.size(), file.paragraphs);
    EXPECT_EQ(data.questions.size(), file.questions);
    const auto rows = rows_of(data);
    const auto score = metrics::score_answers({}, rows.questions, rows.predictions);
    EXPECT_NEAR(score.all.exact_match, file.exact_match, 1e-9);
    EXPECT_NEAR(score.all.f1, file.f1, 1e-9);
  }
}

TEST_F(RealSquad, OfVersion20HasQuestionsWithoutAnswersAndTheScoresOfTransformers) {
  const auto data =
      read("squad_v2_dev_5articles/dev-v2.0-5articles.json", {.require_answers = true});
  EXPECT_EQ(data.paragraphs.size(), 173);
  const auto rows = rows_of(data);
  const metrics::SquadOptions options{.version = metrics::SquadVersion::kV2,
                                      .no_answer_threshold = 0.9};
  const auto score =
      metrics::score_answers(options, rows.questions, rows.predictions, rows.no_answer);
  EXPECT_EQ(score.all.total, 1407);
  EXPECT_NEAR(score.all.exact_match, 57.28500355366027, 1e-9);
  EXPECT_NEAR(score.all.f1, 71.57799591689918, 1e-9);
  EXPECT_EQ(score.has_answer->total, 705);
  EXPECT_NEAR(score.has_answer->exact_match, 58.43971631205674, 1e-9);
  EXPECT_NEAR(score.has_answer->f1, 86.96487979443584, 1e-9);
  EXPECT_EQ(score.no_answer->total, 702);
  EXPECT_NEAR(score.no_answer->f1, 56.12535612535613, 1e-9);
  EXPECT_NEAR(score.best_exact->score, 58.28002842928216, 1e-9);
  EXPECT_EQ(score.best_exact->threshold, 0.998);
  EXPECT_NEAR(score.best_f1->score, 73.96064051702766, 1e-9);
  EXPECT_EQ(score.best_f1->threshold, 0.998);
}

}  // namespace
}  // namespace stretto
