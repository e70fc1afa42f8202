#pragma once

#include <cstdint>
#include <string>

#include "config/field.h"
#include "decoding/sampling_options.h"

namespace stretto::decoding {

/// `[decode]`: from a trained model to sentences.
struct DecodeOptions : SamplingOptions {
  using Inherited = SamplingOptions;

  std::string method = "beam";
  int64_t beam_size = 5;
  int64_t nbest = 1;
  std::string length_penalty_type = "fairseq";
  double length_penalty = 1.0;
  double max_len_a = 1.2;
  int64_t max_len_b = 10;
  int64_t min_len = 1;
  int64_t max_tokens = 2048;
  bool continuous = true;
  std::string shortlist;
  int64_t shortlist_common = 100;
  int64_t shortlist_best = 100;
  int64_t alignment_layer = -1;

  static auto fields() {
    using namespace config;
    using O = DecodeOptions;
    const Meta scoring{.change = Change::kScoring};
    return Fields{field(&O::method, "method", "beam search, or one random sample per hypothesis",
                        one_of({"beam", "sample"}), scoring)
                      .also_called({"do_sample", "sampling", "random_sampling"}, "= \"sample\"")
                      .also_called({"search", "strategy"})
                      .value_also_called("beam", {"greedy"}, "with decode.beam_size = 1")
                      .value_also_called("beam", {"beam_search"})
                      .value_also_called("sample", {"sampling", "random"})
                      .value_also_called("sample", {"nucleus"}, "with decode.top_p"),
                  field(&O::beam_size, "beam_size", "hypotheses kept at each step; 1 = greedy",
                        between(1, 1000), scoring)
                      .also_called({"beam", "num_beams", "beam_width", "generation_num_beams"}),
                  field(&O::nbest, "nbest", "hypotheses returned per sentence, at most beam_size",
                        between(1, 1000), scoring)
                      .also_called({"n_best", "num_return_sequences", "num_hypotheses"}),
                  field(&O::length_penalty_type, "length_penalty_type",
                        "fairseq: score / length^a; gnmt: score / ((5 + length) / 6)^a; none",
                        one_of({"fairseq", "gnmt", "none"}), scoring)
                      .value_also_called("gnmt", {"wu", "google"})
                      .value_also_called("fairseq", {"avg", "average", "mean", "length"})
                      .value_also_called("none", {"off"}),
                  field(&O::length_penalty, "length_penalty", "the exponent a", any(), scoring)
                      .also_called({"lenpen", "alpha", "normalize", "length_alpha", "lp"})
                      .read_with("length_penalty_type", {"fairseq", "gnmt"}),
                  field(&O::max_len_a, "max_len_a", "output stops at a * source + b tokens",
                        at_least(0), scoring)
                      .also_called({"max_length_factor", "max_length_ratio"}),
                  field(&O::max_len_b, "max_len_b", "the b of that bound", at_least(0),
                        {.unit = "tokens", .change = Change::kScoring})
                      .also_called({"max_length", "max_len", "max_new_tokens",
                                    "generation_max_length", "max_decode_length"}),
                  field(&O::min_len, "min_len", "shortest output, end-of-sentence not counted",
                        at_least(0), {.unit = "tokens", .change = Change::kScoring})
                      .also_called({"min_length", "min_new_tokens", "min_decoding_length"})}
        .with(SamplingOptions::fields())
        .with(Fields{
            field(&O::max_tokens, "max_tokens",
                  "bound of source tokens times beam_size in one batch", at_least(1),
                  {.unit = "tokens", .change = Change::kScoring})
                .also_called({"batch_size", "batch_tokens", "max_tokens_decode"}),
            field(&O::continuous, "continuous",
                  "sentences enter a batch as soon as others in it have ended; false = one batch "
                  "after the other, with the same outputs",
                  any(), {.change = Change::kFree})
                .also_called({"continuous_batching", "inflight_batching"}),
            field(&O::shortlist, "shortlist",
                  "file of SOURCE TARGET [PROBABILITY] words, a pair a line: an output has only "
                  "words that its source has pairs with, and common ones; empty = any word",
                  any(), {.change = Change::kScoring, .is_path = true})
                .also_called({"vmap", "use_vmap", "vocab_map", "lexical_shortlist"}),
            field(&O::shortlist_common, "shortlist_common",
                  "the first pieces of the target's vocabulary, its frequent ones, are in every "
                  "shortlist",
                  at_least(0), {.unit = "pieces", .change = Change::kScoring})
                .also_called({"shortlist_first"}),
            field(&O::shortlist_best, "shortlist_best",
                  "the likeliest pairs of a source piece that count", at_least(1),
                  {.unit = "pairs", .change = Change::kScoring}),
            field(&O::alignment_layer, "alignment_layer",
                  "decoder layer whose mean cross-attention is the alignment; -1 = last",
                  at_least(-1), scoring),
        });
  }
};

}  // namespace stretto::decoding
