#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "decoding/decode_options.h"
#include "decoding/sampling_options.h"

namespace stretto::decoding {

/// `[decode]` of a language model: how it continues a prompt.
struct GenerationOptions : SamplingOptions {
  using Inherited = SamplingOptions;

  std::string method = "sample";
  int64_t beam_size = 1;
  int64_t nbest = 1;
  double length_penalty = 1.0;
  int64_t max_new_tokens = 100;
  int64_t min_len = 0;
  std::vector<std::string> stop;
  std::vector<std::string> end_tokens;
  std::string text_begin = "separator";
  int64_t max_tokens = 8192;

  static auto fields() {
    using namespace config;
    using O = GenerationOptions;
    const Meta scoring{.change = Change::kScoring};
    const Meta tokens{.unit = "tokens", .change = Change::kScoring};
    return Fields{
        field(&O::method, "method", "random samples, or beam search, which is greedy by default",
              one_of({"beam", "sample"}), scoring)
            .also_called({"do_sample", "sampling"}, "= \"sample\"")
            .also_called({"search", "strategy"})
            .value_also_called("beam", {"greedy", "beam_search"})
            .value_also_called("sample", {"sampling", "random"})
            .value_also_called("sample", {"nucleus"}, "with decode.top_p"),
        field(&O::beam_size, "beam_size", "hypotheses kept at each step; 1 = greedy",
              between(1, 1000), scoring)
            .also_called({"beam", "num_beams", "beam_width"})
            .read_with("method", {"beam"}),
        field(&O::nbest, "nbest",
              "continuations of each prompt: samples, or hypotheses, of which there are at most "
              "beam_size",
              between(1, 1000), scoring)
            .also_called({"n_best", "num_return_sequences", "num_samples"}),
        field(&O::length_penalty, "length_penalty",
              "hypotheses are ranked by log-probability / length^a", any(), scoring)
            .also_called({"lenpen", "alpha", "normalize"})
            .read_with("method", {"beam"}),
        field(&O::max_new_tokens, "max_new_tokens",
              "a continuation has at most so many tokens, and no more than the model has positions",
              between(1, 1000000), tokens)
            .also_called({"max_len_b", "max_length", "max_len", "max_tokens_to_sample", "n_predict",
                          "max_gen_toks"}),
        field(&O::min_len, "min_len",
              "a continuation does not end before it has so many tokens, but where a stop string "
              "comes",
              at_least(0), tokens)
            .also_called({"min_length", "min_new_tokens"}),
        field(&O::stop, "stop", "texts before which a continuation ends; they are not printed",
              any(), scoring)
            .also_called({"stop_strings", "stop_sequences", "stop_sequence", "until"}),
        field(&O::end_tokens, "end_tokens",
              "tokens that end a continuation, as they stand in the tokenizer's file, beside its "
              "own end of a text; an imported model has those of its eos_token_id",
              any(), scoring)
            .also_called({"stop_token_ids", "stop_tokens", "terminators"}),
        field(&O::text_begin, "text_begin",
              "what stands in front of a text that is continued or scored: separator = the token "
              "between texts in training; tokenizer = what tokenizer.json puts there, perhaps "
              "nothing, as a model that was imported expects it",
              one_of({"separator", "tokenizer"}), scoring)
            .also_called({"prompt_begin", "begin_of_text"})}
        .with(SamplingOptions::fields())
        .with(Fields{field(&O::max_tokens, "max_tokens",
                           "bound of one batch: tokens of prompts and continuations", at_least(1),
                           {.unit = "tokens", .change = Change::kScoring})
                         .also_called({"batch_size", "batch_tokens"})});
  }

  /// Lanes that search holds for each prompt.
  int64_t lanes() const { return method == "beam" ? beam_size : nbest; }

  /// As search() reads them: bounds do not depend on a source.
  DecodeOptions search_options() const {
    DecodeOptions options;
    static_cast<SamplingOptions&>(options) = *this;
    options.method = method;
    options.beam_size = lanes();
    options.nbest = nbest;
    options.length_penalty = length_penalty;
    options.max_len_a = 0;
    options.max_len_b = max_new_tokens;
    options.min_len = min_len;
    return options;
  }
};

}  // namespace stretto::decoding
