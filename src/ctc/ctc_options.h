#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"

namespace stretto::ctc {

/// `[decode]` of models whose last layer is that of CTC: from log-probabilities of frames to texts.
/// Scores are natural logarithms:
///
///     log p(labels | frames) + alpha * log p(words) + beta * number of words + hot words
///
/// Without a language model, beta adds nothing.
struct CtcOptions {
  std::string method = "greedy";
  int64_t beam_size = 100;
  int64_t beam_token = 40;
  double beam_threshold = 25;
  int64_t nbest = 1;
  std::string lm;
  std::string lm_unit = "words";
  double alpha = 0.5;
  double beta = 1.0;
  double unknown_score = -10;
  std::string lexicon;
  bool lexicon_from_lm = false;
  std::vector<std::string> hot_words;
  double hot_weight = 5;

  static auto fields() {
    using namespace config;
    using O = CtcOptions;
    const Meta scoring{.change = Change::kScoring};
    const Meta path{.change = Change::kScoring, .is_path = true};
    return Fields{
        field(&O::method, "method",
              "greedy: the likeliest class of each frame; beam: prefix beam search",
              one_of({"greedy", "beam"}), scoring)
            .also_called({"decoder", "decoding_method", "strategy", "search"})
            .also_called({"use_lm"}, "= \"beam\" with decode.lm")
            .value_also_called("greedy", {"argmax", "best_path", "greedy_batch"})
            .value_also_called("beam", {"beam_search", "prefix_beam", "flashlight", "pyctcdecode"}),
        field(&O::beam_size, "beam_size", "prefixes kept after each frame", between(1, 100000),
              scoring)
            .also_called({"beam", "beam_width", "num_beams"})
            .read_with("method", {"beam"}),
        field(&O::beam_token, "beam_token",
              "likeliest labels of a frame by which prefixes may grow; 0 = all", at_least(0),
              scoring)
            .also_called({"beam_size_token", "cutoff_top_n", "top_paths_per_frame"})
            .read_with("method", {"beam"}),
        field(&O::beam_threshold, "beam_threshold",
              "prefixes that score this much below the best one are dropped; 0 = none is",
              at_least(0), scoring)
            .also_called({"beam_prune_logp", "prune_threshold"})
            .read_with("method", {"beam"}),
        field(&O::nbest, "nbest", "hypotheses returned, at most beam_size; greedy has one",
              between(1, 100000), scoring)
            .also_called({"n_best", "num_hypotheses", "top_k"})
            .read_with("method", {"beam"}),
        field(&O::lm, "lm",
              "n-gram language model: ARPA text, plain or gzip, or a binary file of KenLM", any(),
              path)
            .also_called({"kenlm_model_path", "kenlm_path", "lm_model_path", "kenlm"})
            .read_with("method", {"beam"}),
        field(&O::lm_unit, "lm_unit", "words, or labels: what a token of the language model is",
              one_of({"words", "labels"}), scoring)
            .also_called({"decoding_mode", "lm_type"})
            .value_also_called("labels", {"characters", "chars", "tokens", "pieces"})
            .read_with("method", {"beam"}),
        field(&O::alpha, "alpha", "weight of the language model", any(), scoring)
            .also_called({"lm_alpha", "beam_alpha"})
            .read_with("method", {"beam"}),
        field(&O::beta, "beta", "added for each token that the language model scores", any(),
              scoring)
            .also_called(
                {"word_score", "word_insertion_bonus", "lm_beta", "beam_beta", "insertion_bonus"})
            .read_with("method", {"beam"}),
        field(&O::unknown_score, "unknown_score",
              "added for a word that the language model does not know", any(), scoring)
            .also_called({"unk_score", "unk_score_offset", "unk_weight"})
            .read_with("method", {"beam"}),
        field(&O::lexicon, "lexicon",
              "file of the only words that are possible: WORD, or WORD and its labels, a line",
              any(), path)
            .also_called({"lexicon_path", "trie_path", "dictionary"})
            .read_with("method", {"beam"}),
        field(&O::lexicon_from_lm, "lexicon_from_lm",
              "the words of the language model are the only ones possible", any(), scoring)
            .read_with("method", {"beam"}),
        field(&O::hot_words, "hot_words", "words and phrases that are expected", any(), scoring)
            .also_called({"hotwords", "boosting_phrases", "key_phrases", "context_phrases"})
            .read_with("method", {"beam"}),
        field(&O::hot_weight, "hot_weight", "added for each hot word that is found", any(), scoring)
            .also_called({"hotword_weight", "context_score", "boosting_tree_alpha"})
            .read_with("method", {"beam"}),
    };
  }
};

}  // namespace stretto::ctc
