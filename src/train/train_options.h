#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "optim/precision_options.h"
#include "runs/keep_options.h"
#include "train/forensics/forensics_options.h"

namespace stretto::train {

/// `[train]`: length of the run, accumulation, checkpoints.
struct TrainOptions {
  int64_t max_steps = 0;
  int64_t max_epochs = 0;
  double max_hours = 0;
  int64_t patience = 0;
  std::string stop = "none";
  double size_exponent = 0.076;
  int64_t update_freq = 1;
  std::string precision = "fp32";
  optim::LossScaleOptions loss_scale;
  bool noise_scale = true;
  ForensicsOptions forensics;
  int64_t save_every = 1000;
  bool save_in_background = true;
  int64_t keep_last = 2;
  int64_t keep_best = 1;
  int64_t keep_every = 0;
  int64_t average_last = 0;
  std::vector<std::string> freeze;
  std::vector<std::string> unfreeze;
  double ema_decay = 0;
  bool ema_warmup = true;
  int64_t average_nonmono = 0;
  std::string init_from;
  std::string init_vocabulary = "same";
  std::vector<std::string> init_only;

  /// Which checkpoints stay.
  runs::KeepOptions checkpoints_kept() const {
    return {.keep_last = keep_last,
            .keep_best = keep_best,
            .keep_every = keep_every,
            .average_last = average_last,
            .keep_good = forensics.policy == "rollback"};
  }
  /// Whether checkpoints have an average of the weights beside those that training goes on with.
  bool averages_weights() const { return ema_decay > 0 || average_nonmono > 0; }

  static auto fields() {
    using namespace config;
    using O = TrainOptions;
    return Fields{
        field(&O::max_steps, "max_steps",
              "stop after this many updates; those that are skipped do not count; 0 = no limit",
              at_least(0), {.unit = "updates", .change = Change::kScoring})
            .also_called({"max_update", "max_updates", "num_steps", "num_updates", "steps",
                          "updates", "train_steps", "max_iterations", "iterations", "after_batches",
                          "max_batches", "max_iters"}),
        field(&O::max_epochs, "max_epochs",
              "stop after this many passes over the data; 0 = no limit", at_least(0),
              {.unit = "epochs", .change = Change::kScoring})
            .also_called({"epochs", "num_epochs", "max_epoch", "num_train_epochs", "after_epochs"}),
        field(&O::max_hours, "max_hours",
              "stop, saved, after this much training time; 0 = no limit", at_least(0),
              {.unit = "hours", .change = Change::kScoring})
            .also_called({"stop_time_hours", "max_time"}),
        field(&O::patience, "patience",
              "stop after this many validations without improvement of eval.best_metric; 0 = never",
              at_least(0), {.unit = "validations", .change = Change::kScoring})
            .also_called({"early_stopping", "early_stopping_patience", "early_stop"}),
        field(&O::stop, "stop",
              "compute_optimal: stop where a larger model would lower the loss of validations more "
              "in the same time, by the curve of those so far; at least eight are looked at",
              one_of({"none", "compute_optimal"}), {.change = Change::kScoring}),
        field(&O::size_exponent, "size_exponent",
              "how the loss falls with the size of the model, parameters^-x: 0.076 for language "
              "models (Kaplan et al. 2020); `stretto plan --hours` prints what it measured",
              {.min = 0, .max = 2, .min_open = true, .choices = {}}, {.change = Change::kScoring})
            .read_with("stop", {"compute_optimal"}),
        field(&O::update_freq, "update_freq",
              "micro-batches per update, summed over all processes (gradient accumulation)",
              at_least(1), {.unit = "micro-batches"})
            .also_called({"accum_count", "accumulation_steps", "gradient_accumulation_steps",
                          "accumulate_grad_batches", "optimizer_delay", "aggregation_frequency",
                          "gradient_accumulation", "grad_accum"},
                         "micro-batches of all processes together"),
        optim::with_other_precision_names(
            field(&O::precision, "precision",
                  "arithmetic of matrix products; weights, norms, softmax and losses stay fp32. "
                  "auto: mixed_bf16 where the hardware is fast at it, else fp32. auto_fp16: "
                  "mixed_fp16 on a GPU that is fast at it, else as auto. tf32 is fp32 on a CPU",
                  optim::precision_names())
                .also_called({"fp16", "amp"}, "= \"mixed_fp16\"")
                .also_called({"bf16"}, "= \"mixed_bf16\"")
                .also_called({"tf32"}, "= \"tf32\"")
                .also_called({"mixed_precision", "model_dtype", "dtype", "half_precision"})),
        field(&O::loss_scale, "loss_scale",
              "what the loss is multiplied by before backward, in half precision")
            .also_called({"loss_scaling", "grad_scaler", "cost_scaling"}),
        field(
            &O::noise_scale, "noise_scale",
            "measure the gradient noise scale, which says how large a batch is worth while; needs "
            "two micro-batches an update",
            any(), {.change = Change::kFree})
            .also_called({"gradient_noise_scale", "gns"}),
        field(&O::forensics, "forensics",
              "what happens when a loss or gradient is not finite, or far from the usual"),
        field(&O::save_every, "save_every", "updates between checkpoints; the end always saves",
              at_least(1), {.unit = "updates", .change = Change::kFree})
            .also_called({"save_interval", "save_interval_updates", "save_steps", "save_freq",
                          "checkpoint_every", "save_checkpoint_steps", "checkpoint_interval",
                          "min_checkpoint_period"}),
        field(&O::save_in_background, "save_in_background",
              "training goes on while a checkpoint is written from a copy in memory", any(),
              {.change = Change::kFree}),
        field(&O::keep_last, "keep_last", "newest checkpoints that are kept", at_least(1),
              {.unit = "checkpoints", .change = Change::kFree})
            .also_called({"keep_checkpoint", "keep_checkpoints", "keep_interval_updates",
                          "keep_last_epochs", "save_total_limit", "save_trial_latest",
                          "max_to_keep"}),
        field(&O::keep_best, "keep_best", "best checkpoints by eval.best_metric that are kept",
              at_least(0), {.unit = "checkpoints", .change = Change::kFree})
            .also_called({"keep_best_checkpoints", "save_trial_best"})
            .also_called({"load_best_model_at_end"},
                         "`eval` and `infer` take the best checkpoint by themselves"),
        field(&O::keep_every, "keep_every", "keep each checkpoint at a multiple of this; 0 = none",
              at_least(0), {.unit = "updates", .change = Change::kFree}),
        field(&O::average_last, "average_last",
              "at the end write the mean of the last N checkpoints as `averaged`; 0 = off",
              at_least(0), {.unit = "checkpoints", .change = Change::kFree})
            .also_called({"average_checkpoints", "checkpoint_averaging", "num_average"}),
        field(&O::freeze, "freeze",
              "name patterns of tensors that stay as they are (* and ? as in a shell): no "
              "gradient, no update, no weight decay. Of tied tensors any name freezes all. A "
              "batch norm whose gain and bias are frozen keeps its running statistics, and "
              "uses them")
            .also_called(
                {"frozen", "freeze_params", "freeze_modules", "freeze_layers", "frozen_parameters"})
            .also_called({"freeze_encoder", "encoder_freeze"}, "by the pattern \"encoder.*\"")
            .also_called({"freeze_decoder", "decoder_freeze"}, "by the pattern \"decoder.*\""),
        field(&O::unfreeze, "unfreeze",
              "\"PATTERN UPDATES\": matching tensors stay as they are for so many updates, and "
              "then train as if training began. The first match wins, also against freeze, "
              "model.lora and model.adapter")
            .also_called({"gradual_unfreezing", "unfreeze_schedule", "unfreeze_at", "thaw"}),
        field(&O::ema_decay, "ema_decay",
              "exponential moving average of the weights, for validation, eval and infer; "
              "training goes on with its own. 0 = off, 0.999 to 0.9999 is usual",
              fraction())
            .also_called({"ema", "store_ema", "moving_average", "moving_average_decay",
                          "exponential_moving_average", "polyak_averaging"})
            .also_called({"exponential_smoothing", "average_decay"}, "1 minus it"),
        field(&O::ema_warmup, "ema_warmup",
              "the decay of update t is at most (1 + t) / (10 + t), so that the first weights are "
              "soon forgotten")
            .read_unless_zero("ema_decay"),
        field(&O::average_nonmono, "average_nonmono",
              "NT-ASGD (Merity et al. 2017: 5): validation, eval and infer have the mean of the "
              "weights since validations got worse. That is when a loss is above the best of all "
              "but the last N. Training goes on with its own weights. 0 = off",
              at_least(0), {.unit = "validations"})
            .also_called({"nonmono", "non_mono", "nt_asgd", "asgd", "ntasgd"}),
        field(&O::init_from, "init_from",
              "start from the weights of another run (folder), of one checkpoint, or of a model "
              "folder of transformers, with its tokenizer and [model]; fine-tuning",
              any(), {.is_path = true})
            .also_called({"pretrained", "pretrained_model", "finetune_from", "finetune_from_model",
                          "train_from", "model_name_or_path", "source_checkpoint_uuid",
                          "warm_start_from"})
            .also_called({"restore_file", "resume_from_checkpoint"},
                         "a run goes on by itself from its own checkpoint"),
        field(&O::init_vocabulary, "init_vocabulary",
              "same: the tokenizer is that of init_from. match: it is what [tokenizer] says, "
              "and rows of embeddings and output are taken over where both have the piece",
              one_of({"same", "match"})),
        field(&O::init_only, "init_only",
              "name patterns of the tensors that are taken from init_from, the others begin anew; "
              "\"encoder.* = other.*\" takes what has other names there; empty = all of them")
            .also_called({"ignore_mismatched_sizes"}, "patterns of what is taken")
            .also_called({"load_pretrained_encoder_from"},
                         "by the pattern \"encoder.*\", beside train.init_from"),
    };
  }
};

/// What the loop itself must know of `[eval]`; the rest of the section is its family's.
struct ValidationOptions {
  int64_t every = 1000;              ///< updates between validations; the end always validates
  bool at_start = false;             ///< before the first update of a new run too, as step 0
  std::string best_metric = "loss";  ///< the score that `best` means
};

}  // namespace stretto::train
