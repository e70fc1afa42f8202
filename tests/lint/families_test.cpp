// Rules ask a family what it says of itself, and have no word of any.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "experiment/task_rules.h"
#include "lint/rules.h"
#include "tests/base/temp_dir.h"
#include "tests/experiment/recipes.h"
#include "tests/lint/sound_config.h"

namespace stretto::lint {
namespace {

using testing::codes_of;
using testing::kTwoHeads;
using testing::lint_of;

constexpr const char* kTexts =
    "[task]\nname = \"text_classification\"\n"
    "[data]\ntrain = [\"a.tsv\"]\nvalid = [\"b.tsv\"]\n[train]\nmax_steps = 9000\n";
constexpr const char* kQuestions =
    "[task]\nname = \"question_answering\"\n"
    "[data]\ntrain = [\"a.json\"]\nvalid = [\"b.json\"]\n[train]\nmax_steps = 9000\n";
constexpr const char* kMasks =
    "[task]\nname = \"masked_lm\"\n"
    "[data]\ntrain = [\"a.txt\"]\nvalid = [\"b.txt\"]\n[train]\nmax_steps = 9000\n";

/// A family that does not exist: recordings, of which letters are heard.
class SpeechRules : public experiment::TaskRules {
 public:
  using Experiment = experiment::Experiment;

  void check_model(experiment::RuleCheck& /*c*/) const override {}
  void check_data(experiment::RuleCheck& /*c*/) const override {}
  std::vector<experiment::ScoreSpec> scores(const Experiment& /*e*/) const override {
    return {{.style = {.name = "wer"},
             .title = "word error rate",
             .noise = {.fewest = 300, .source = "Bisani and Ney 2004"}},
            {.style = {.name = "ctc"}}};
  }
  experiment::ValidationData validation_data(const Experiment& /*e*/) const override {
    return {.there = true, .name = "recordings", .keys = {"data.valid"}, .remedy = ""};
  }
  experiment::BatchBound micro_batch(const Experiment& /*e*/) const override {
    return {.key = "data.max_seconds", .value = 100, .unit = "seconds"};
  }
  std::string name_of_data() const override { return "recordings"; }
  experiment::ScoredSamples scored_samples(const Experiment& /*e*/,
                                           const experiment::FileSizes& files) const override {
    return {.count = files.validation, .unit = "utterance", .key = "data.valid"};
  }
  experiment::LabelSmoothing label_smoothing(
      const Experiment& /*e*/, const experiment::FileSizes& /*files*/) const override {
    return {
        .key = "loss.smoothing", .share = 0.2, .classes = 28, .one = "letter", .many = "letters"};
  }
  experiment::MicroBatchSamples samples_of_micro_batch(const Experiment& /*e*/) const override {
    return {.key = "data.max_utterances", .most = 4, .unit = "utterance", .usual_size = 10};
  }
  int64_t num_output_heads(const Experiment& /*e*/) const override { return 3; }
  std::optional<experiment::TiedEmbedding> tied_embedding(const Experiment& /*e*/) const override {
    return experiment::TiedEmbedding{.setting = "model.tied = true",
                                     .others = "model.tied = false"};
  }
  bool has_batch_norm(const Experiment& /*e*/) const override { return true; }
};

/// What a rule says of recordings.
Remark said_of_speech(LintRule rule, const experiment::Experiment& e,
                      const LintContext& context = {}) {
  const SpeechRules speech;
  Remarks remarks;
  rule(Subject(e, speech, context), remarks);
  EXPECT_EQ(remarks.size(), 1U);
  return remarks.empty() ? Remark{} : remarks.front();
}

TEST(LintOfFamilies, AScoreOfFewSamplesIsNamedAsItsFamilyNamesIt) {
  experiment::Experiment e;
  e.eval.best_metric = "wer";
  const Remark few = said_of_speech(&rules::noisy_best, e, {.files = {.validation = 20}});
  EXPECT_EQ(few.key, "data.valid");
  EXPECT_EQ(few.reason,
            "`best` is chosen by the word error rate of 20 utterances, which is mostly noise");
  EXPECT_EQ(few.fix, "give 300 utterances or more, or use eval.best_metric = \"ctc\"");
  EXPECT_EQ(few.source, "Bisani and Ney 2004");
}

TEST(LintOfFamilies, RulesSpeakInTheUnitsOfTheFamily) {
  experiment::Experiment e;
  e.train.update_freq = 2;
  EXPECT_EQ(said_of_speech(&rules::fewer_micro_batches_than_heads, e).fix,
            "train.update_freq = 3 or more; a lower data.max_seconds keeps the batch");
  e.train.update_freq = 4;
  EXPECT_EQ(said_of_speech(&rules::few_updates_per_epoch, e, {.files = {.epoch = 1000}}).reason,
            "one update takes a good part of the training recordings: about 2.5 updates an epoch "
            "(some 1,000 seconds, 400 an update)");
  e.optim.reference_batch = 100;
  e.optim.lr_scaling = "linear";
  EXPECT_EQ(said_of_speech(&rules::rate_of_tokens_for_few_samples, e).reason,
            "4 samples are about 40 seconds, and optim.lr is scaled for the most that a "
            "micro-batch may have, 100");
  const Remark norm = said_of_speech(&rules::few_rows_to_normalise, e);
  EXPECT_EQ(norm.key, "data.max_utterances");
  EXPECT_NE(norm.reason.find("about 4 utterances here"), std::string::npos) << norm.reason;
  EXPECT_TRUE(norm.fix.starts_with("data.max_utterances = 16 with ")) << norm.fix;
  e.optim.name = "lazy_adam";
  EXPECT_EQ(said_of_speech(&rules::nothing_to_be_lazy_with, e).fix,
            "use optim.name = \"adam\", or model.tied = false");
  // 0.2 ln(27 / 0.2) - 0.8 ln 0.8 = 1.16; ln 28 = 3.33
  EXPECT_EQ(said_of_speech(&rules::heavy_smoothing, e).reason,
            "0.2 of the probability goes to all 27 other letters: the loss cannot fall below 1.16, "
            "and guessing blindly costs 3.33");
  e.train.max_epochs = 3;
  const SpeechRules speech;
  EXPECT_EQ(Subject(e, speech, {.files = {.epoch = 40'000}}).run.text(),
            "about 300 updates (guessed from the size of the recordings)");
}

/// What a code says of a configuration; empty = it is not there.
Finding found(const std::string& code, const std::vector<std::string>& overrides,
              const LintContext& context, const char* file) {
  for (const auto& finding : lint_of(overrides, context, file)) {
    if (finding.code == code) return finding;
  }
  return {};
}

TEST(LintOfFamilies, AnAccuracyOfFewTextsSaysHowFarItScatters) {
  const auto noisy = [](const std::vector<std::string>& overrides, int64_t texts) {
    return found("EV003", overrides, {.files = {.validation = texts}}, kTexts);
  };
  const auto few = noisy({}, 20);
  EXPECT_EQ(few.key, "data.valid");
  EXPECT_EQ(few.reason,
            "`best` is chosen by the accuracy of 20 texts, which is mostly noise: its standard "
            "error is up to 11.2 points");
  EXPECT_EQ(few.fix, "give 400 texts or more, or use eval.best_metric = \"loss\"");
  EXPECT_EQ(few.source, "docs/large-batches.md#validation");
  EXPECT_EQ(noisy({}, 399).code, "EV003");
  EXPECT_EQ(noisy({}, 400).code, "");
  EXPECT_EQ(noisy({}, 0).code, "") << "nobody knows";
  EXPECT_EQ(noisy({"train.keep_best=0"}, 20).code, "");
  EXPECT_EQ(noisy({"eval.best_metric=loss"}, 20).code, "");
  EXPECT_TRUE(noisy({"eval.best_metric=macro_f1"}, 20)
                  .reason.ends_with("by the macro F1 of 20 texts, which is mostly noise"));
  const auto regression = noisy({"data.label_kind=number"}, 20);
  EXPECT_TRUE(
      regression.reason.ends_with("by the Pearson correlation of 20 texts, which is mostly noise"))
      << regression.reason;
  EXPECT_TRUE(regression.fix.ends_with("use eval.best_metric = \"mse\"")) << regression.fix;
}

TEST(LintOfFamilies, ScoresOfFewQuestionsAndMaskedTokensAreNotedToo) {
  EXPECT_TRUE(found("EV003", {}, {.files = {.validation = 100}}, kQuestions)
                  .reason.ends_with("by the F1 of 100 questions, which is mostly noise: its "
                                    "standard error is up to 5.0 points"));
  const auto masked = [](const char* metric, int64_t tokens) {
    return found("EV003", {metric}, {.files = {.validation = tokens}}, kMasks).reason;
  };
  EXPECT_EQ(masked("eval.best_metric=nll", 20), "");
  EXPECT_NE(masked("eval.best_metric=accuracy", 100).find("accuracy of about 100 masked tokens,"),
            std::string::npos);
  // The guess may be off twofold.
  EXPECT_NE(masked("eval.best_metric=accuracy", 199), "");
  EXPECT_EQ(masked("eval.best_metric=accuracy", 200), "");
}

TEST(LintOfFamilies, TheBleuOfOneHeadIsJudgedAsThatOfAll) {
  const auto head =
      found("EV003", {"eval.best_metric=de.bleu", "eval.bleu_sentences=100"}, {}, kTwoHeads);
  EXPECT_EQ(head.reason, "`best` is chosen by the de.bleu of 100 sentences, which is mostly noise");
  EXPECT_EQ(head.fix, "raise it to 500 or more, or use eval.best_metric = \"nll\"");
  const auto all =
      found("EV003", {"eval.best_metric=bleu"}, {.files = {.validation = 30}}, kTwoHeads);
  EXPECT_EQ(all.key, "data.heads.0.valid_src");
  EXPECT_EQ(all.reason, "`best` is chosen by the BLEU of 30 sentences, which is mostly noise");
  EXPECT_EQ(all.fix, "give 500 sentences or more, or use eval.best_metric = \"nll\"");
}

TEST(LintOfFamilies, SmoothedLabelsAreJudgedByTheirNumber) {
  const auto noted = [](const char* smoothing, int64_t labels) {
    return found("SC005", {smoothing}, {.files = {.classes = labels}}, kTexts).reason;
  };
  // What is usual is not noted, though of two labels it costs half of blind guessing.
  EXPECT_EQ(noted("loss.label_smoothing=0.1", 2), "");
  // 0.11 ln(1 / 0.11) - 0.89 ln 0.89 = 0.347
  EXPECT_EQ(noted("loss.label_smoothing=0.11", 2),
            "0.11 of the probability goes to the other label: the loss cannot fall below 0.35, and "
            "guessing blindly costs 0.69");
  EXPECT_TRUE(noted("loss.label_smoothing=0.2", 4)
                  .starts_with("0.2 of the probability goes to all 3 other labels: "));
  EXPECT_EQ(noted("loss.label_smoothing=0.3", 0), "");
  EXPECT_EQ(noted("loss.label_smoothing=0.31", 0),
            "0.31 of the probability goes to all other labels");
  EXPECT_EQ(found("SC005", {}, {}, kQuestions).code, "") << "a family that smooths nothing";
}

TEST(LintOfFamilies, LazyAdamHasNothingToDoWhereMasksAreReadFromTheirTable) {
  const auto noted = [](const std::vector<std::string>& overrides, const char* file) {
    std::vector<std::string> all{"optim.name=lazy_adam"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    return found("CF002", all, {}, file);
  };
  const auto tied = noted({}, kMasks);
  EXPECT_EQ(
      tied.reason,
      "the only embedding is the output projection too (model.tie_embeddings = true), so that "
      "every row has a gradient: lazy_adam is adam here");
  EXPECT_EQ(tied.fix, "use optim.name = \"adam\", or model.tie_embeddings = false");
  EXPECT_EQ(noted({"model.tie_embeddings=false"}, kMasks).code, "");
  EXPECT_EQ(noted({}, kTexts).code, "") << "its table is no output projection";
  EXPECT_EQ(noted({}, kQuestions).code, "");
}

TEST(LintOfFamilies, WhereNoModelHasBatchNormNoneIsAdvised) {
  EXPECT_EQ(found("BN003", {"dist.batch_norm=all"}, {}, kTexts).fix, "leave it out");
  EXPECT_EQ(found("BN003", {"dist.batch_norm=all"}, {}, testing::kSound).fix,
            "model.norm_layer = \"batch_norm\", or leave it out");
}

TEST(LintOfFamilies, ABatchNormOfLabelsIsOverTheTextsOfAMicroBatch) {
  const auto noted = [](const std::string& more) {
    return found("BN001", {"model.name=lstm", "model.head_norm=batch_norm", more}, {}, kTexts);
  };
  EXPECT_EQ(noted("data.max_samples=16").code, "");
  EXPECT_EQ(noted("data.max_samples=15").key, "data.max_samples");
  const auto few = noted("data.max_tokens=1280");
  EXPECT_EQ(few.key, "data.max_tokens");
  EXPECT_NE(few.reason.find("about 10 texts here"), std::string::npos) << few.reason;
}

TEST(LintOfFamilies, WhatFilesTellReachesTheRules) {
  const stretto::testing::TempDir folder;
  folder.write("a.tsv", "text\tlabel\ngood\tx\nbad\ty\n");
  folder.write("b.tsv", "text\tlabel\nfine\tx\n");
  const auto texts = inspect(folder.write("texts.toml", kTexts), {"loss.label_smoothing=0.2"});
  EXPECT_EQ(codes_of(texts.findings), (std::vector<std::string>{"EV003", "SC005"}));
  folder.write("c", "one line\nand another\n");
  folder.write("d", "eine Zeile\nund noch eine\n");
  const auto path = folder.write("pairs.toml", testing::kSound);
  const auto pairs = inspect(path, {"eval.best_metric=bleu"});
  ASSERT_EQ(codes_of(pairs.findings), std::vector<std::string>{"EV003"});
  EXPECT_EQ(pairs.findings[0].key, "data.valid_src");
  EXPECT_TRUE(inspect(path, {}).findings.empty());
}

// Whatever a family has, no rule may ask it for the sections of another.
TEST(LintOfFamilies, EveryRuleCanBeAskedOfEveryFamily) {
  std::set<std::string> families;
  for (const auto& path : stretto::testing::shipped_recipes(STRETTO_SOURCE_DIR)) {
    auto options = inspect(path, {}).options;
    families.insert(options.task.name());
    // Rules that ask the family for more behind a condition.
    options.optim.name = "lazy_adam";
    options.optim.lr_scaling = "linear";
    options.optim.reference_batch = 64;
    options.train.update_freq = 100;
    for (const char* batch_norm : {"worker", "all"}) {
      options.dist.batch_norm = batch_norm;
      EXPECT_NO_THROW(lint(options, {},
                           {.processes = 3,
                            .files = {.epoch = 1000, .classes = 3, .validation = 20},
                            .tensors = testing::kTensors}))
          << path;
    }
  }
  const auto names = experiment::TaskChoice::names();
  EXPECT_EQ(families, std::set<std::string>(names.begin(), names.end()));
}

}  // namespace
}  // namespace stretto::lint
