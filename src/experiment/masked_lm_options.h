#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "config/field.h"
#include "experiment/text_eval_options.h"
#include "models/bert_options.h"
#include "text/text_tokenizer_options.h"

namespace stretto::experiment {

/// `[data]` of masked language models: plain text.
struct MaskedTextOptions {
  std::vector<std::string> train, valid, test;
  int64_t max_tokens = 4096;
  int64_t max_samples = 0;
  int64_t max_text_tokens = 128;
  int64_t prefetch = 8;

  static auto fields() {
    using namespace config;
    using O = MaskedTextOptions;
    const Meta path{.is_path = true};
    const Meta free_path{.change = Change::kFree, .is_path = true};
    return std::tuple{
        field(&O::train, "train", "training text", any(), path)
            .also_called({"train_file", "train_files"}),
        field(&O::valid, "valid", "validation text", any(), path)
            .also_called({"dev", "validation_file"}),
        field(&O::test, "test", "text that `stretto eval` takes by default", any(), free_path)
            .also_called({"test_file"}),
        field(&O::max_tokens, "max_tokens", "bound of the real tokens of one micro-batch",
              at_least(1), {.unit = "tokens"})
            .also_called({"mini_batch_words", "tokens_per_batch", "batch_tokens"}),
        field(&O::max_samples, "max_samples",
              "bound of samples in one micro-batch, beside max_tokens; 0 = none", at_least(0),
              {.unit = "samples"})
            .also_called({"batch_size", "per_device_train_batch_size", "train_batch_size",
                          "max_batch_size", "mini_batch"},
                         "data.max_tokens bounds a micro-batch too"),
        field(&O::max_text_tokens, "max_text_tokens", "longest sequence, special tokens included",
              between(8, 100000), {.unit = "tokens"})
            .also_called({"max_len", "max_length", "max_seq_len", "max_seq_length",
                          "tokens_per_sample", "block_size"}),
        field(&O::prefetch, "prefetch", "micro-batches that are made ready ahead of the model",
              between(1, 1024), {.unit = "micro-batches", .change = Change::kFree})
            .also_called({"num_workers", "dataloader_num_workers", "prefetch_factor"}),
    };
  }
};

/// The sections of a configuration with `task.name = "masked_lm"`, beside those that every
/// experiment has.
struct MaskedLmOptions {
  static constexpr const char* kName = "masked_lm";

  MaskedTextOptions data;
  text::TextTokenizerOptions tokenizer;
  models::BertOptions model;
  TextEvalOptions eval;

  static auto fields() {
    using config::field;
    using O = MaskedLmOptions;
    return std::tuple{
        field(&O::data, "data", "text, read in place")
            .also_called({"dataset", "corpus", "datasets"}),
        field(&O::tokenizer, "tokenizer", "from text to ids and back")
            .also_called({"vocab", "vocabulary", "wordpiece"}),
        field(&O::model, "model", "the network").also_called({"network", "architecture"}),
        field(&O::eval, "eval", "validation while training"),
    };
  }
};

}  // namespace stretto::experiment
