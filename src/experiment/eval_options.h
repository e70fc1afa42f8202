#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "optim/precision_options.h"
#include "train/train_options.h"

namespace stretto::experiment {

/// By which `best` can go in any family of tasks, each once; what a configuration may name depends
/// on its own (TaskRules::scores in experiment/task_rules.h).
std::vector<std::string> score_names();

/// `[eval]`: validation while training. What is scored, and how, each family adds.
struct EvalOptions {
  int64_t every = 1000;
  bool at_start = false;
  std::string best_metric = "nll";
  std::string precision = "fp32";

  /// What the training loop goes by.
  train::ValidationOptions validation() const {
    return {.every = every, .at_start = at_start, .best_metric = best_metric};
  }

  static auto fields() {
    using namespace config;
    using O = EvalOptions;
    return Fields{
        field(&O::every, "every", "updates between validations; the end always validates",
              at_least(1), {.unit = "updates", .change = Change::kScoring})
            .also_called({"eval_every", "eval_steps", "eval_interval", "evaluation_steps",
                          "valid_interval", "valid_freq", "valid_steps", "validate_interval",
                          "validate_interval_updates", "validate_every", "val_check_interval",
                          "min_validation_period"}),
        field(&O::at_start, "at_start",
              "validate before the first update of a new run too, as step 0; never the best", any(),
              {.change = Change::kScoring})
            .also_called({"eval_on_start", "eval_at_start", "validate_at_start", "valid_at_start"}),
        field(&O::best_metric, "best_metric",
              "what `best` means for keep_best and patience; the default is that of the task: nll, "
              "accuracy of labels, pearson of values, f1 of answers",
              such_as(score_names()), {.change = Change::kScoring})
            .also_called({"metric", "metric_for_best_model", "best_checkpoint_metric",
                          "valid_metrics", "early_stopping_criteria", "early_stopping_metric"}),
        optim::with_other_precision_names(
            field(&O::precision, "precision",
                  "arithmetic of matrix products in validation, eval, infer and embed, whatever "
                  "train.precision is; its values mean the same",
                  optim::precision_names(), {.change = Change::kScoring})
                .also_called({"bf16_full_eval"}, "= \"mixed_bf16\"")
                .also_called({"fp16_full_eval"}, "= \"mixed_fp16\"")
                .also_called({"compute_type", "inference_precision"})),
    };
  }
};

}  // namespace stretto::experiment
