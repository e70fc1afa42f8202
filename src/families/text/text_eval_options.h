#pragma once

#include <cstdint>

#include "config/field.h"

namespace stretto::experiment {

/// @tparam Options  an `[eval]` with the key, beside max_tokens
template <class Options>
auto eval_max_samples_field() {
  using namespace config;
  return field(&Options::max_samples, "max_samples",
               "bound of samples in one validation batch, beside max_tokens; 0 = none", at_least(0),
               {.unit = "samples", .change = Change::kScoring})
      .also_called({"valid_mini_batch", "max_sentences_valid"})
      .also_called(
          {"eval_batch_size", "valid_batch_size", "per_device_eval_batch_size", "batch_size_valid"},
          "eval.max_tokens bounds a batch too");
}

/// What `[eval]` has for tasks on encoded texts, beside experiment/eval_options.h.
struct TextEvalOptions {
  int64_t max_tokens = 0;
  int64_t max_samples = 0;

  static auto fields() {
    using namespace config;
    using O = TextEvalOptions;
    return Fields{
        field(&O::max_tokens, "max_tokens", "bound of one validation batch; 0 = as fits the device",
              at_least(0), {.unit = "tokens", .change = Change::kScoring})
            .also_called({"max_tokens_valid"}),
        eval_max_samples_field<O>(),
    };
  }
};

}  // namespace stretto::experiment
