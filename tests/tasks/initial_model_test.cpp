#include "tasks/initial_model.h"

#include <gtest/gtest.h>

#include "families/question_answering/question_answering_options.h"
#include "tests/base/temp_dir.h"

namespace stretto::tasks {
namespace {

/// A run of this configuration, as train.init_from names one.
class HeadOfAnotherRun : public ::testing::Test {
 protected:
  bool is_another(const std::string& toml) const {
    dir_.write("config.toml", toml);
    runs::InitialRun run;
    run.folder = dir_.path();
    return InitialModel(run).has_another_head(own_);
  }

  static std::string config(const std::string& task, const std::string& more = "") {
    return "[task]\nname = \"" + task +
           "\"\n[data]\ntrain = [\"train\"]\nvalid = [\"valid\"]\n"
           "[tokenizer]\nvocab_size = 40\n[schedule]\nwarmup_steps = 0\n"
           "[train]\nmax_steps = 5\n" +
           more;
  }

  HeadOfAnotherRun() { own_.task = experiment::QuestionAnsweringOptions{}; }

  stretto::testing::TempDir dir_;
  experiment::Experiment own_;
};

TEST_F(HeadOfAnotherRun, IsAnotherIfTheTaskIs) {
  EXPECT_TRUE(is_another(config("text_classification")));
  EXPECT_TRUE(is_another(config("masked_lm")));
  EXPECT_FALSE(is_another(config("question_answering")));
}

TEST_F(HeadOfAnotherRun, OfAnEncoderAloneThePoolerIsTaken) {
  EXPECT_FALSE(is_another(config("masked_lm", "[model]\nhead = \"none\"\n")));
}

TEST_F(HeadOfAnotherRun, WhatCannotBeReadIsTakenAsItFits) {
  EXPECT_FALSE(is_another("# nothing"));
  EXPECT_FALSE(InitialModel(runs::InitialRun{}).has_another_head(own_));
}

}  // namespace
}  // namespace stretto::tasks
