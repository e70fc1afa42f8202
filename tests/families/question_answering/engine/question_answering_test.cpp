#include "families/question_answering/engine/question_answering.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "base/text.h"
#include "families/question_answering/engine/loaded_questions.h"
#include "families/question_answering/engine/question_answering_family.h"
#include "families/question_answering/question_answering_display.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/distributed/thread_group.h"
#include "tests/families/question_answering/engine/small_questions.h"
#include "tests/tasks/listed_scores.h"
#include "tests/tasks/size_in_events.h"

namespace stretto::tasks {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

class QuestionAnsweringTaskTest : public ::testing::Test {
 protected:
  QuestionAnsweringTaskTest() {
    e_ = testing::small_experiment(folder_);
    experiment::questions_of(e_).data.max_tokens = 64;
    e_.report.samples = 2;
  }

  std::unique_ptr<FamilyTask> task(const distributed::ProcessGroup& group = {}) const {
    experiment::LoadedExperiment loaded;
    loaded.options = e_;
    const Family& family = question_answering_family();
    return family.make_task(e_, family.first_assets(loaded), {.group = group, .device = at::kCPU});
  }

  testing::TempDir folder_;
  experiment::Experiment e_;
};

TEST_F(QuestionAnsweringTaskTest, LearnsFromAllWindowsOfAnEpoch) {
  const auto made = task();
  const auto& batches = made->train_batches();
  std::set<int64_t> seen;
  for (int64_t i = 0; i < batches.num_batches(); ++i) {
    for (const int64_t id : batches.load(0, i).sample_ids) EXPECT_TRUE(seen.insert(id).second);
  }
  const auto data = experiment::read_questions(e_, experiment::questions_of(e_).data.train);
  const data::QuestionWindows windows(data, *testing::small_tokenizer(),
                                      experiment::window_options(e_));
  EXPECT_EQ(static_cast<int64_t>(seen.size()), windows.num_windows());
  EXPECT_GT(windows.num_windows(), 4) << "the first paragraph has several windows";
}

TEST_F(QuestionAnsweringTaskTest, SumsOfPartsAreThoseOfTheBatch) {
  const auto made = task();
  made->model().train();
  const auto batch =
      data::concatenate({made->train_batches().load(0, 0), made->train_batches().load(0, 1)});
  const int64_t half = batch.num_sequences() / 2;
  const train::StepContext context{.seed = 1, .update = 4};
  const auto whole = made->loss(made->prepare(batch), context);
  const auto first = made->loss(made->prepare(data::part(batch, 0, half)), context);
  const auto second =
      made->loss(made->prepare(data::part(batch, half, batch.num_sequences())), context);
  EXPECT_NEAR(whole.losses[0].item<double>(),
              first.losses[0].item<double>() + second.losses[0].item<double>(), 1e-4);
  EXPECT_EQ(whole.statistics[0].item<int64_t>(),
            first.statistics[0].item<int64_t>() + second.statistics[0].item<int64_t>());
  EXPECT_EQ(whole.counts[0], first.counts[0] + second.counts[0]);
  EXPECT_EQ(whole.counts[1], batch.num_sequences());
  EXPECT_EQ(made->weights(batch)[0], static_cast<double>(batch.num_sequences()));
  EXPECT_EQ(size_in_events(*made, batch, question_answering_display().loss_unit),
            made->weights(batch)[0]);
  EXPECT_TRUE(whole.losses[0].requires_grad());
}

TEST_F(QuestionAnsweringTaskTest, ValidatesAllQuestionsAndShowsSome) {
  const auto made = task();
  const auto result = made->validate();
  expect_listed(result, e_);
  expect_listed(made->measures({.losses = {3}, .weights = {4}, .statistics = {2}}), e_);
  EXPECT_GT(train::find_score(result.scores, "loss")->value, 0);
  ASSERT_EQ(result.samples.size(), 2u);
  EXPECT_EQ(std::get<report::MarkedTextSample>(result.samples[0]).request, "Who lives in Oslo?");
  EXPECT_EQ(std::get<report::MarkedTextSample>(result.samples[1]).request, "Who lives at sea?");
}

TEST_F(QuestionAnsweringTaskTest, ProcessesShareAValidationAndGetTheSameScores) {
  experiment::questions_of(e_).eval.max_tokens = 40;
  const auto alone = task()->validate();
  std::mutex lock;
  stretto::test::run_ranks(2, [&](const distributed::ProcessGroup& group) {
    std::unique_ptr<FamilyTask> made;
    {
      const std::scoped_lock guard(lock);
      made = task(group);
    }
    const auto shared = made->validate();
    const std::scoped_lock guard(lock);
    for (size_t i = 0; i < alone.scores.size(); ++i) {
      EXPECT_EQ(shared.scores[i].value, alone.scores[i].value) << alone.scores[i].name;
    }
    EXPECT_EQ(shared.samples.size(), alone.samples.size());
  });
}

TEST_F(QuestionAnsweringTaskTest, TellsHowManyTokensItsQuestionsLost) {
  const auto cut_facts = [&] {
    Facts found;
    for (const auto& fact : task()->facts()) {
      if (fact.first.ends_with(", cut")) found.push_back(fact);
    }
    return found;
  };
  EXPECT_TRUE(cut_facts().empty());
  experiment::questions_of(e_).data.max_question_tokens = 3;
  // The questions have 5, 6, 8 and 2 tokens: words that are not known are spelt.
  const std::string lost = "3 questions, 10 tokens above data.max_question_tokens";
  EXPECT_EQ(cut_facts(),
            (Facts{{"training windows, cut", lost}, {"validation windows, cut", lost}}));
}

TEST_F(QuestionAnsweringTaskTest, FewWindowsBoundTheTokensOfAnUpdate) {
  e_.train.update_freq = 3;
  EXPECT_EQ(task()->update_bound(), 3 * 64);
  experiment::questions_of(e_).data.max_samples = 1;
  EXPECT_EQ(task()->update_bound(), 3 * 40);
}

TEST_F(QuestionAnsweringTaskTest, ShowsASampleAsPeopleReadIt) {
  const auto made = task();
  const auto& batches = made->train_batches();
  for (int64_t i = 0; i < batches.num_batches(); ++i) {
    const auto batch = batches.load(0, i);
    for (int64_t k = 0; k < batch.num_sequences(); ++k) {
      const auto shown = made->show(batch, k);
      ASSERT_EQ(shown.size(), 4u);
      if (shown[0].second != "d") continue;
      EXPECT_EQ(shown[1].second, "Who?");
      EXPECT_EQ(shown[2].second, "In Oslo lives Anna.");
      EXPECT_EQ(shown[3].second, "Anna");
      return;
    }
  }
  FAIL() << "question d is in no batch";
}

TEST_F(QuestionAnsweringTaskTest, RemembersWhetherQuestionsHadNoAnswer) {
  EXPECT_TRUE(had_impossible(task()->assets()));
  experiment::questions_of(e_).data.train = {folder_.write(
      "answered.json", R"({"data": [{"paragraphs": [{"context": "In Oslo.", "qas": [{"id": "x",
        "question": "Where?", "answers": [{"text": "Oslo", "answer_start": 3}]}]}]}]})")};
  EXPECT_FALSE(had_impossible(task()->assets()));
  EXPECT_FALSE(had_impossible({}));
  testing::failure(ExitCode::kBadData, [] { had_impossible({{"answers.json", "[]"}}); });
}

TEST_F(QuestionAnsweringTaskTest, OtherQuestionsAreOtherFacts) {
  const auto facts = task()->data_facts();
  std::string other = testing::kSmallQuestions;
  other.replace(other.find("Who?"), 4, "Whom");
  experiment::questions_of(e_).data.train = {folder_.write("other.json", other)};
  const auto changed = task()->data_facts();
  EXPECT_NE(facts[0].value, changed[0].value);
  EXPECT_EQ(facts[1].value, changed[1].value);
}

}  // namespace
}  // namespace stretto::tasks
