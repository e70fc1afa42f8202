#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "config/field.h"

namespace stretto::text {

/// `[tokenizer]`: from text to ids and back.
struct TokenizerOptions {
  std::string type = "sentencepiece";
  std::string algorithm = "bpe";
  bool joint = true;
  int64_t vocab_size = 8000;
  double character_coverage = 1.0;
  int64_t max_training_lines = 2000000;
  std::string model, src_model, tgt_model;
  std::string src_vocab, tgt_vocab;
  std::string subwords = "auto";
  int64_t vocab_multiple = 8;

  static auto fields() {
    using namespace config;
    using O = TokenizerOptions;
    const Meta path{.is_path = true};
    return std::tuple{
        field(&O::type, "type",
              "sentencepiece: raw text in, pieces trained or loaded; vocab: text is already split "
              "at spaces, ids come from a vocabulary file",
              one_of({"sentencepiece", "vocab"})),
        field(&O::algorithm, "algorithm", "how a SentencePiece model is trained",
              one_of({"bpe", "unigram"})),
        field(&O::joint, "joint", "one vocabulary for both sides"),
        field(&O::vocab_size, "vocab_size", "pieces of a trained model, specials included",
              between(16, 1000000), {.unit = "pieces"}),
        field(&O::character_coverage, "character_coverage",
              "share of characters that get a piece of their own", between(0.9, 1.0)),
        field(&O::max_training_lines, "max_training_lines",
              "lines of each side, drawn by seed, that train the model", at_least(1),
              {.unit = "lines"}),
        field(&O::model, "model", "existing SentencePiece model for both sides", any(), path),
        field(&O::src_model, "src_model", "existing SentencePiece model of the source", any(),
              path),
        field(&O::tgt_model, "tgt_model", "existing SentencePiece model of the target", any(),
              path),
        field(&O::src_vocab, "src_vocab",
              "vocabulary of the source, one token a line, or a fairseq dict.txt", any(), path),
        field(&O::tgt_vocab, "tgt_vocab", "vocabulary of the target; empty = src_vocab", any(),
              path),
        field(&O::subwords, "subwords",
              "of type vocab: how the text was split into sub-words, which are joined in "
              "translations and for scores. bpe: `hou@@ se`; sentencepiece: `▁hou se`; wordpiece: "
              "`hou ##se`; none: tokens stay as they are; auto: as the vocabulary shows",
              one_of({"auto", "none", "bpe", "sentencepiece", "wordpiece"}),
              {.change = Change::kFree}),
        field(&O::vocab_multiple, "vocab_multiple",
              "embedding rows are rounded up to a multiple of this", between(1, 1024)),
    };
  }
};

}  // namespace stretto::text
