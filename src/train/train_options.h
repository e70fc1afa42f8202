#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "config/field.h"
#include "optim/precision_options.h"
#include "train/forensics_options.h"

namespace stretto::train {

/// `[train]`: length of the run, accumulation, checkpoints.
struct TrainOptions {
  int64_t max_steps = 0;
  int64_t max_epochs = 0;
  double max_hours = 0;
  int64_t patience = 0;
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
  std::string init_from;
  std::string init_vocabulary = "same";

  static auto fields() {
    using namespace config;
    using O = TrainOptions;
    return std::tuple{
        field(&O::max_steps, "max_steps",
              "stop after this many updates; those that are skipped do not count; 0 = no limit",
              at_least(0), {.unit = "updates", .change = Change::kFree}),
        field(&O::max_epochs, "max_epochs",
              "stop after this many passes over the data; 0 = no limit", at_least(0),
              {.unit = "epochs", .change = Change::kFree}),
        field(&O::max_hours, "max_hours",
              "stop, saved, after this much training time; 0 = no limit", at_least(0),
              {.unit = "hours", .change = Change::kFree}),
        field(&O::patience, "patience",
              "stop after this many validations without improvement of eval.best_metric; 0 = never",
              at_least(0), {.unit = "validations", .change = Change::kFree}),
        field(&O::update_freq, "update_freq",
              "micro-batches per update, summed over all processes (gradient accumulation)",
              at_least(1), {.unit = "micro-batches"}),
        field(&O::precision, "precision",
              "arithmetic of matrix products; weights, norms, softmax and losses stay fp32. auto: "
              "mixed_bf16 where the hardware is fast at it, else fp32; auto_fp16: mixed_fp16 on a "
              "GPU that is fast at it, else as auto; tf32 is fp32 on a CPU",
              one_of({"auto", "auto_fp16", "fp32", "tf32", "mixed_bf16", "mixed_fp16"})),
        field(&O::loss_scale, "loss_scale",
              "what the loss is multiplied by before backward, in half precision"),
        field(
            &O::noise_scale, "noise_scale",
            "measure the gradient noise scale, which says how large a batch is worth while; needs "
            "two micro-batches an update",
            any(), {.change = Change::kFree}),
        field(&O::forensics, "forensics",
              "what happens when a loss or gradient is not finite, or far from the usual"),
        field(&O::save_every, "save_every", "updates between checkpoints; the end always saves",
              at_least(1), {.unit = "updates", .change = Change::kFree}),
        field(&O::save_in_background, "save_in_background",
              "training goes on while a checkpoint is written from a copy in memory", any(),
              {.change = Change::kFree}),
        field(&O::keep_last, "keep_last", "newest checkpoints that are kept", at_least(1),
              {.unit = "checkpoints", .change = Change::kFree}),
        field(&O::keep_best, "keep_best", "best checkpoints by eval.best_metric that are kept",
              at_least(0), {.unit = "checkpoints", .change = Change::kFree}),
        field(&O::keep_every, "keep_every", "keep each checkpoint at a multiple of this; 0 = none",
              at_least(0), {.unit = "updates", .change = Change::kFree}),
        field(&O::average_last, "average_last",
              "at the end write the mean of the last N checkpoints as `averaged`; 0 = off",
              at_least(0), {.unit = "checkpoints", .change = Change::kFree}),
        field(&O::init_from, "init_from",
              "start from the weights of another run (folder) or of one checkpoint, with its "
              "tokenizer; fine-tuning",
              any(), {.is_path = true}),
        field(&O::init_vocabulary, "init_vocabulary",
              "same: the tokenizer is that of init_from; match: it is what [tokenizer] says, and "
              "rows of embeddings and output are taken over where both have the piece",
              one_of({"same", "match"})),
    };
  }
};

/// `[eval]`: validation while training.
struct EvalOptions {
  int64_t every = 1000;
  bool bleu = true;
  int64_t bleu_sentences = 0;
  std::string best_metric = "nll";
  int64_t max_tokens = 4096;

  static auto fields() {
    using namespace config;
    using O = EvalOptions;
    return std::tuple{
        field(&O::every, "every", "updates between validations; the end always validates",
              at_least(1), {.unit = "updates", .change = Change::kFree}),
        field(&O::bleu, "bleu", "translate the validation set and score it with BLEU", any(),
              {.change = Change::kFree}),
        field(&O::bleu_sentences, "bleu_sentences",
              "translate only the first N validation sentences while training; 0 = all",
              at_least(0), {.unit = "sentences", .change = Change::kFree}),
        field(&O::best_metric, "best_metric", "what `best` means for keep_best and patience",
              one_of({"nll", "bleu"}), {.change = Change::kFree}),
        field(&O::max_tokens, "max_tokens", "bound of one validation batch", at_least(1),
              {.unit = "tokens", .change = Change::kFree}),
    };
  }
};

}  // namespace stretto::train
