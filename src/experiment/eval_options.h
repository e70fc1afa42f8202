#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "config/field.h"
#include "train/train_options.h"

namespace stretto::experiment {

/// `[eval]`: validation while training.
struct EvalOptions {
  int64_t every = 1000;
  bool bleu = true;
  int64_t bleu_sentences = 0;
  std::string best_metric = "nll";
  int64_t max_tokens = 4096;

  /// What the training loop goes by.
  train::ValidationOptions validation() const {
    return {.every = every, .best_metric = best_metric};
  }

  static auto fields() {
    using namespace config;
    using O = EvalOptions;
    return std::tuple{
        field(&O::every, "every", "updates between validations; the end always validates",
              at_least(1), {.unit = "updates", .change = Change::kFree})
            .also_called({"eval_every", "eval_steps", "eval_interval", "evaluation_steps",
                          "valid_interval", "valid_freq", "valid_steps", "validate_interval",
                          "validate_interval_updates", "validate_every", "val_check_interval",
                          "min_validation_period"}),
        field(&O::bleu, "bleu", "translate the validation set and score it with BLEU", any(),
              {.change = Change::kFree})
            .also_called({"eval_bleu", "predict_with_generate"}),
        field(&O::bleu_sentences, "bleu_sentences",
              "translate only the first N validation sentences while training; 0 = all",
              at_least(0), {.unit = "sentences", .change = Change::kFree}),
        field(&O::best_metric, "best_metric", "what `best` means for keep_best and patience",
              one_of({"nll", "bleu"}), {.change = Change::kFree})
            .also_called({"metric", "metric_for_best_model", "best_checkpoint_metric",
                          "valid_metrics", "early_stopping_criteria", "early_stopping_metric"})
            .value_also_called("nll", {"loss", "ce", "cross_entropy", "ppl", "perplexity",
                                       "valid_loss", "eval_loss"})
            .value_also_called("bleu", {"sacrebleu", "bleu_detok", "eval_bleu"}),
        field(&O::max_tokens, "max_tokens", "bound of one validation batch", at_least(1),
              {.unit = "tokens", .change = Change::kFree})
            .also_called({"valid_mini_batch", "eval_batch_size", "valid_batch_size",
                          "per_device_eval_batch_size", "max_tokens_valid", "batch_size_valid"}),
    };
  }
};

}  // namespace stretto::experiment
