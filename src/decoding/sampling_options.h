#pragma once

#include <cstdint>

#include "config/field.h"

namespace stretto::decoding {

/// How tokens are chosen, whatever is written: keys of every `[decode]` that writes tokens, whose
/// options inherit them beside a key `method`.
struct SamplingOptions {
  int64_t no_repeat_ngram = 0;
  double repetition_penalty = 1.0;
  double frequency_penalty = 0.0;
  double presence_penalty = 0.0;
  double temperature = 1.0;
  int64_t top_k = 0;
  double top_p = 1.0;
  double min_p = 0.0;
  int64_t seed = 1;

  static auto fields() {
    using namespace config;
    using O = SamplingOptions;
    const Meta scoring{.change = Change::kScoring};
    return Fields{
        field(&O::no_repeat_ngram, "no_repeat_ngram", "no n-gram of this order twice; 0 = off",
              at_least(0), scoring)
            .also_called({"no_repeat_ngram_size", "block_ngram_repeat"}),
        field(&O::repetition_penalty, "repetition_penalty",
              "logits of tokens that were there already are divided by it, or multiplied where "
              "they are negative (CTRL); 1 = off",
              between(0.01, 100), scoring)
            .also_called({"repeat_penalty", "rep_penalty"}),
        field(&O::frequency_penalty, "frequency_penalty",
              "taken from a token's logit each time that the output has it already; 0 = off",
              between(-100, 100), scoring),
        field(&O::presence_penalty, "presence_penalty",
              "taken once from the logit of a token that the output has already; 0 = off",
              between(-100, 100), scoring),
        field(&O::temperature, "temperature",
              "of sampling: below 1 is safer, above 1 is bolder; top_k = 1 takes the likeliest "
              "token alone",
              greater(0), scoring)
            .also_called({"sampling_temperature", "random_sampling_temp"})
            .read_with("method", {"sample"}),
        field(&O::top_k, "top_k", "sample only from the k likeliest tokens; 0 = all", at_least(0),
              scoring)
            .also_called({"sampling_topk", "random_sampling_topk"})
            .read_with("method", {"sample"}),
        field(&O::top_p, "top_p", "sample only from the likeliest tokens that reach this mass",
              between(0.0001, 1.0), scoring)
            .also_called({"sampling_topp", "random_sampling_topp", "nucleus"})
            .read_with("method", {"sample"}),
        field(&O::min_p, "min_p",
              "sample only from tokens of at least this share of the likeliest one's probability; "
              "0 = all",
              fraction(), scoring)
            .also_called({"sampling_minp", "minp"})
            .read_with("method", {"sample"}),
        field(&O::seed, "seed", "of sampling", at_least(0), scoring)
            .read_with("method", {"sample"}),
    };
  }
};

}  // namespace stretto::decoding
