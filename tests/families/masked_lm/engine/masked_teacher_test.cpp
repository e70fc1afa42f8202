#include "families/masked_lm/engine/masked_teacher.h"

#include <gtest/gtest.h>

#include <string>

#include "families/masked_lm/engine/masked_lm.h"
#include "families/masked_lm/engine/masked_lm_family.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/families/masked_lm/small_masked_lm.h"
#include "tests/tasks/teacher_run.h"
#include "tests/tasks/train_family.h"
#include "tests/train/toy_task.h"

namespace stretto::tasks {
namespace {

class MaskedTeacherTest : public ::testing::Test {
 protected:
  MaskedTeacherTest() {
    experiment_.options.task = experiment::MaskedLmOptions{};
    stretto::testing::make_small(sections(), folder_, 300, 40);
  }

  experiment::MaskedLmOptions& sections() {
    return experiment_.options.task.as<experiment::MaskedLmOptions>();
  }

  train::TrainerSetup train(const std::string& name, int64_t updates) {
    return train_family(family_, experiment_, folder_ / name, {.updates = updates, .lr = 0.005});
  }

  void train_teacher(int64_t updates) {
    const auto setup = train("teacher", updates);
    make_teacher(folder_, experiment_.options, setup, sections().loss);
  }

  const Family& family_ = masked_lm_family();
  testing::TempDir folder_;
  experiment::LoadedExperiment experiment_;
};

TEST_F(MaskedTeacherTest, AStudentTakesItsTokenizerAndComesNearToItsProbabilities) {
  train_teacher(60);
  auto& own = sections();
  own.model.d_model = 8;
  own.loss.teacher_weight = 1;  // nothing of the hidden tokens
  own.loss.teacher_hidden = 0.1;
  own.loss.teacher_attention = 0.1;
  const auto assets = family_.first_assets(experiment_);
  experiment_.options.run.seed = 5;
  EXPECT_EQ(family_.first_assets(experiment_), assets) << "none is drawn from the text";
  const auto events = train::test::events(train("student", 100), "train");
  ASSERT_GT(events.size(), 1U);
  EXPECT_LT(*events.back().number("loss"), 0.5 * *events.front().number("loss"));
  EXPECT_LT(*events.back().number("nll"), *events.front().number("nll"));
}

TEST_F(MaskedTeacherTest, RefusesAnotherVocabularyAndShorterTexts) {
  train_teacher(1);
  const auto assets = family_.first_assets(experiment_);
  const auto refuses = [&](const Assets& own, const std::string& said) {
    const auto error = stretto::testing::failure(
        ExitCode::kUsage, [&] { const MaskedTeacher teacher(experiment_.options, own, at::kCPU); });
    EXPECT_NE(error.message().find(said), std::string::npos) << error.message();
  };
  auto other = assets;
  other.begin()->second += " ";
  refuses(other, "another vocabulary");
  sections().data.max_text_tokens = 17;
  refuses(assets, "16 learned positions");
}

}  // namespace
}  // namespace stretto::tasks
