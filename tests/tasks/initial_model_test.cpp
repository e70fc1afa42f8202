#include "tasks/initial_model.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "families/question_answering/question_answering_options.h"
#include "store/safetensors.h"
#include "tests/base/failure.h"
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

/// Advice about tensors of a run of this configuration that do not fit.
class MisfitOfAnotherRun : public HeadOfAnotherRun {
 protected:
  std::string advice(ExitCode code = ExitCode::kBadData) const {
    dir_.write("config.toml", config("question_answering", "[model]\nnum_heads = 4\n"));
    runs::InitialRun run;
    run.folder = dir_.path();
    store::TensorView layer{"encoder.layers.0.ffn.up.weight", store::DType::kF32, {0}, ""};
    run.checkpoint.files.emplace_back("model", store::SafetensorsFile({layer}));
    const auto refuse = [&] { throw Error(code, "a misfit", "mend it", {"in full"}); };
    const auto error =
        stretto::testing::failure(code, [&] { InitialModel(run).explain_misfit(own_, refuse); });
    EXPECT_STREQ(error.what(), "a misfit");
    EXPECT_EQ(error.details(), std::vector<std::string>{"in full"});
    return error.advice();
  }
};

TEST_F(MisfitOfAnotherRun, IsExplainedByWhatTheModelsDifferIn) {
  own_.train.init_only = {"encoder.*"};
  EXPECT_EQ(advice(), "mend it; the models differ in model.num_heads: 4 there, 12 here");
  EXPECT_EQ(advice(ExitCode::kUsage), "mend it") << "no tensor is asked for";
  own_.train.init_only.clear();
  EXPECT_EQ(advice(), "mend it") << "the differences are an error of their own";
}

}  // namespace
}  // namespace stretto::tasks
