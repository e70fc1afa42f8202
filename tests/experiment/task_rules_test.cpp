#include "experiment/task_rules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "experiment/experiment_schema.h"
#include "experiment/preflight.h"
#include "experiment/rules.h"
#include "experiment/scaled_rate.h"
#include "experiment/schedule_length.h"
#include "families/question_answering/question_data.h"
#include "families/translation/translation_options.h"

namespace stretto::experiment {
namespace {

using Keys = std::vector<std::string>;

/// A family of pictures, which has no text and no tokenizer.
class PictureRules : public TaskRules {
 public:
  void check_model(RuleCheck& c) const override {
    if (translation_of(c.e).model.d_model > 64)
      c.wrong({"model.d_model"}, "too wide for pictures", "lower it");
  }
  void check_data(RuleCheck& c) const override {
    if (translation_of(c.e).data.max_samples == 0) {
      c.wrong({"data.max_samples"}, "there are no pictures", "set it");
    }
  }
  std::vector<ScoreSpec> scores(const Experiment& /*e*/) const override {
    return {
        {.style = {.name = "loss"}},
        {.style = {.name = "accuracy", .higher_is_better = true}, .also_called = {"acc", "top1"}},
        {.style = {.name = "seconds"}, .ranks = false},
        {.style = {.name = "cats.f1", .higher_is_better = true}}};
  }
  ValidationData validation_data(const Experiment& e) const override {
    return {.there = translation_of(e).data.max_samples > 9,
            .name = "ten pictures",
            .keys = {"data.max_samples"},
            .remedy = "raise data.max_samples"};
  }
  BatchBound micro_batch(const Experiment& e) const override {
    return {
        .key = "data.max_samples", .value = translation_of(e).data.max_samples, .unit = "pictures"};
  }
};

/// An experiment that breaks none of their rules, and most of translation's.
Experiment with_pictures() {
  Experiment e;
  translation_of(e).model.d_model = 7;
  translation_of(e).tokenizer.type = "vocab";
  translation_of(e).data.max_samples = 10;
  e.train.max_steps = 20000;
  e.eval.best_metric = "accuracy";
  return e;
}

std::vector<config::Problem> problems_of_pictures(const Experiment& e,
                                                  const TaskRules& rules = PictureRules()) {
  std::vector<config::Problem> problems;
  check_rules(e, {}, &rules, problems);
  return problems;
}

Keys keys_of(const std::vector<config::Problem>& problems) {
  Keys keys;
  for (const auto& problem : problems) keys.push_back(problem.key);
  return keys;
}

TEST(TaskRules, AFamilyWithoutTextIsAskedForNone) {
  EXPECT_EQ(keys_of(problems_of_pictures(with_pictures())), Keys{});
}

TEST(TaskRules, StandBeforeAndBehindThoseOfEveryExperiment) {
  Experiment e = with_pictures();
  translation_of(e).model.d_model = 65;
  translation_of(e).data.max_samples = 0;
  e.train.max_steps = 0;
  EXPECT_EQ(keys_of(problems_of_pictures(e)),
            (Keys{"model.d_model", "train.max_steps", "data.max_samples"}));
}

TEST(TaskRules, SayWhatAValidationNeeds) {
  Experiment e = with_pictures();
  translation_of(e).data.max_samples = 9;
  e.train.patience = 3;
  e.eval.at_start = true;
  e.schedule.name = "plateau";
  const auto problems = problems_of_pictures(e);
  ASSERT_EQ(keys_of(problems), (Keys{"train.patience", "eval.at_start", "schedule.name"}));
  EXPECT_EQ(problems[0].what, "needs ten pictures");
  EXPECT_EQ(problems[2].what, "\"plateau\" needs ten pictures");
  EXPECT_EQ(problems[0].hint, "raise data.max_samples");
}

// A problem of reading the data's key comes first; that there are none is its consequence.
TEST(TaskRules, OfAnUnreliableKeyAreLeftOut) {
  Experiment e = with_pictures();
  translation_of(e).data.max_samples = 0;
  e.train.patience = 3;
  const PictureRules rules;
  std::vector<config::Problem> problems{
      {.place = "", .what = "must be", .hint = "", .key = "data.max_samples"}};
  check_rules(e, {}, &rules, problems);
  EXPECT_EQ(problems.size(), 1U);
}

TEST(TaskRules, NameTheWidthThatNoamDividesByAndNoneIsAnError) {
  struct WideRules : PictureRules {
    ModelWidth model_width(const Experiment& /*e*/) const override {
      return {.key = "picture.width", .value = 12};
    }
  };
  Experiment e = with_pictures();
  e.schedule.name = "noam";
  EXPECT_EQ(keys_of(problems_of_pictures(e, WideRules())), Keys{});
  e.optim.lr = 1;
  const WideRules wide;
  EXPECT_DOUBLE_EQ(ScaledRate(e, &wide).rate_after_warmup(), 1 / std::sqrt(12.0 * 4001));
  e.schedule.min_lr = 0.01;
  EXPECT_EQ(keys_of(problems_of_pictures(e, wide)), Keys{"schedule.min_lr"});
  const auto problems = problems_of_pictures(e);
  ASSERT_EQ(keys_of(problems), Keys{"schedule.name"});
  EXPECT_EQ(problems[0].what,
            "\"noam\" divides by the root of the model's width, and models of translation have "
            "none");
  EXPECT_NE(problems[0].hint.find("inverse_sqrt"), std::string::npos);
  // A value that an old file gives has to be the width.
  e.schedule.min_lr = 0;
  e.schedule.d_model = {.value = 512, .given = true};
  const auto given = problems_of_pictures(e, wide);
  ASSERT_EQ(keys_of(given), Keys{"schedule.d_model"});
  EXPECT_EQ(given[0].what, "512 is not picture.width = 12");
  e.schedule.d_model.value = 12;
  EXPECT_EQ(keys_of(problems_of_pictures(e, wide)), Keys{});
}

TEST(TaskRules, SayWhatABatchCounts) {
  Experiment e = with_pictures();
  e.optim.lr_scaling = "linear";
  auto problems = problems_of_pictures(e);
  ASSERT_EQ(keys_of(problems), Keys{"optim.lr_scaling"});
  EXPECT_EQ(problems[0].hint,
            "set it to the batch in pictures (data.max_samples * train.update_freq) that optim.lr "
            "was chosen for");
  e.optim.reference_batch = 40;
  e.optim.lr = 0.25;
  e.train.update_freq = 2;
  const PictureRules rules;
  const ScaledRate rate(e, &rules);
  EXPECT_EQ(rate.batch, 20);
  EXPECT_EQ(rate.ratio, 0.5);
  EXPECT_EQ(rate.peak_lr, 0.125);
  EXPECT_EQ(ScaledRate(e).batch, static_cast<double>(translation_of(e).data.max_tokens) * 2)
      << "translation";
  EXPECT_EQ(ScaledRate(e, nullptr).peak_lr, 0.25) << "a family that is not known";
  e.schedule.min_lr = 0.2;
  problems = problems_of_pictures(e);
  ASSERT_EQ(keys_of(problems), Keys{"schedule.min_lr"});
  EXPECT_EQ(problems[0].what,
            "0.2 is above the peak, 0.125: optim.lr scaled from optim.reference_batch to "
            "20 pictures an update");
}

TEST(TaskRules, AMicroBatchOfFewSamplesHasNoMoreTokensThanTheLongest) {
  struct Row {
    int64_t max_tokens, max_samples, longest, bound;
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const auto& row : std::vector<Row>{{4096, 0, 50, 4096},
                                          {4096, 32, 50, 1600},
                                          {4096, 81, 50, 4050},
                                          {4096, 82, 50, 4096},
                                          {4096, 32, 128, 4096},
                                          {4096, kMost, 512, 4096},
                                          {kMost, kMost, kMost, kMost}}) {
    const auto bound = token_bound(row.max_tokens, row.max_samples, row.longest);
    EXPECT_EQ(bound.value, row.bound) << row.max_samples << " of " << row.longest;
    EXPECT_EQ(bound.key, "data.max_tokens");
    EXPECT_EQ(bound.unit, "tokens");
  }
}

TEST(TaskRules, ScaleTheRateByTheSamplesThatTheFamilyLetsIn) {
  Experiment e;
  e.train.update_freq = 4;
  auto& pairs = translation_of(e).data;
  pairs.max_samples = 32;
  pairs.max_src_tokens = 40;
  pairs.max_tgt_tokens = 50;  // the longer side counts
  EXPECT_EQ(ScaledRate(e).batch, 4 * 32 * 50);
  e.task.select("question_answering");
  questions_of(e).data.max_samples = 12;
  questions_of(e).data.max_text_tokens = 300;
  EXPECT_EQ(ScaledRate(e).batch, 4 * 12 * 300);
}

TEST(TaskRules, NameTheScoresByWhichBestCanGo) {
  Experiment e = with_pictures();
  for (const char* name : {"accuracy", "cats.f1", "loss"}) {
    e.eval.best_metric = name;
    EXPECT_EQ(keys_of(problems_of_pictures(e)), Keys{}) << name;
  }
  for (const auto& [wrong, hint] :
       {std::pair{"bleu", "these are the scores of a validation of translation"},
        {"Accuracy", "did you mean \"accuracy\"?"},
        {"cat.f1", "did you mean \"cats.f1\"?"},
        {"top-1", "did you mean \"accuracy\"?"}}) {
    e.eval.best_metric = wrong;
    const auto problems = problems_of_pictures(e);
    ASSERT_EQ(keys_of(problems), Keys{"eval.best_metric"}) << wrong;
    EXPECT_EQ(problems[0].what,
              "must be one of accuracy, cats.f1, loss, got \"" + std::string(wrong) + "\"");
    EXPECT_EQ(problems[0].hint, hint);
  }
}

TEST(TaskRules, OfTranslationLeadOtherNamesOfScoresToTheirs) {
  for (const auto& [wrong, meant] : {std::pair{"perplexity", "nll"},
                                     {"loss", "nll"},
                                     {"NLL", "nll"},
                                     {"sacrebleu", "bleu"},
                                     {"blue", "bleu"}}) {
    Experiment e;
    translation_of(e).data.train_src = {"/a.src"};
    translation_of(e).data.train_tgt = {"/a.tgt"};
    e.train.max_steps = 20000;
    e.eval.best_metric = wrong;
    std::vector<config::Problem> problems;
    check_rules(e, {}, problems);
    ASSERT_EQ(keys_of(problems), Keys{"eval.best_metric"}) << wrong;
    EXPECT_EQ(problems[0].what, "must be one of nll, bleu, got \"" + std::string(wrong) + "\"");
    EXPECT_EQ(problems[0].hint, "did you mean \"" + std::string(meant) + "\"?");
  }
}

TEST(TaskRules, GiveTheScoreThatIsBestWithoutAnother) {
  Experiment e;
  e.eval.best_metric = "";
  resolve_defaults(e, {});
  EXPECT_EQ(e.eval.best_metric, "nll");
  e.eval.best_metric = "bleu";
  config::Origins origins;
  origins.set("eval.best_metric", {});
  resolve_defaults(e, origins);
  EXPECT_EQ(e.eval.best_metric, "bleu");
}

TEST(TaskRules, ListTheScoresOfAllFamiliesForTheKey) {
  Experiment e;
  const auto schema = experiment_schema(e);
  const auto* key = schema.find("eval.best_metric");
  ASSERT_NE(key, nullptr);
  EXPECT_EQ(key->range.choices,
            (Keys{"nll", "bleu", "accuracy", "f1", "exact_match", "loss", "macro_f1", "matthews",
                  "bits_per_byte", "top5", "wer", "cer", "mel_l1", "stop_error",
                  "attention_diagonality", "monotonic_steps"}));
  EXPECT_EQ(config::range_text(*key),
            "such as nll, bleu, accuracy, f1, exact_match, loss, macro_f1, matthews, "
            "bits_per_byte, top5, wer, cer, mel_l1, stop_error, attention_diagonality, "
            "monotonic_steps");
  e.eval.best_metric = "french.bleu";
  EXPECT_EQ(config::range_error(*key), "") << "a rule judges it";
}

// Preflight asks by the name, and there is nothing to look at in a family of another one.
TEST(TaskRules, LookAtTheirDataBeforeTrainingDoes) {
  Experiment e;
  translation_of(e).data.valid_src = {"/nowhere/v.src"};
  translation_of(e).data.valid_tgt = {"/nowhere/v.tgt"};
  EXPECT_EQ(preflight(e, {}, {.full = true}).stops.size(), 1U);
  EXPECT_EQ(PictureRules().look_at_data(e, {}, {.full = true}).stops.size(), 0U);
  e.task.name_to_bind() = "origami";
  EXPECT_EQ(preflight(e, {}, {.full = true}).stops.size(), 0U);
}

TEST(TaskRules, SayWhoseTokenizerTrainingReadsWith) {
  Experiment e;
  EXPECT_FALSE(takes_tokenizer_of_other_run(e));
  e.train.init_from = "/other/run";
  for (const char* task : {"translation", "masked_lm", "question_answering"}) {
    e.task.select(task);
    EXPECT_TRUE(takes_tokenizer_of_other_run(e)) << task;
    e.train.init_vocabulary = "match";
    EXPECT_FALSE(takes_tokenizer_of_other_run(e)) << task << ": rows of pieces are matched";
    e.train.init_vocabulary = "same";
  }
  questions_of(e).tokenizer.model = "own.json";
  EXPECT_FALSE(takes_tokenizer_of_other_run(e));
  EXPECT_EQ(find_task_rules(e)->tokenizer_options(e).value().model, "own.json");
  e.task.select("translation");
  translation_of(e).tokenizer.type = "vocab";
  EXPECT_TRUE(takes_tokenizer_of_other_run(e));
  translation_of(e).tokenizer.src_vocab = "own.vocab";
  EXPECT_FALSE(takes_tokenizer_of_other_run(e));
  EXPECT_FALSE(PictureRules().tokenizer_options(e)) << "a family without one";
  translation_of(e).tokenizer.src_vocab.clear();
  e.task.name_to_bind() = "origami";
  EXPECT_FALSE(takes_tokenizer_of_other_run(e)) << "a family that is not known";
}

// Its name is refused already, and nobody knows what it needs.
TEST(TaskRules, OfAnUnknownFamilyAreNotGuessed) {
  Experiment e = with_pictures();
  e.task.name_to_bind() = "origami";
  EXPECT_EQ(find_task_rules(e), nullptr);
  e.train.max_steps = 0;
  std::vector<config::Problem> problems;
  check_rules(e, {}, problems);
  EXPECT_EQ(keys_of(problems), Keys{"train.max_steps"});
}

TEST(TaskRules, OfTranslationAreToldInOneOrder) {
  Experiment e;
  translation_of(e).model.encoder.as<models::StackOptions>().num_heads = 7;
  translation_of(e).model.tie_embeddings = "all";
  translation_of(e).tokenizer.joint = false;
  e.optim.lr_scaling = "linear";
  translation_of(e).decode.nbest = 6;
  std::vector<config::Problem> problems;
  check_rules(e, {}, problems);
  EXPECT_EQ(keys_of(problems),
            (Keys{"model.encoder.num_heads", "model.tie_embeddings", "optim.lr_scaling",
                  "train.max_steps", "decode.nbest", "data.train_src"}));
}

}  // namespace
}  // namespace stretto::experiment
