#pragma once

#include <cstdint>
#include <string>

#include "config/field.h"

namespace stretto::text {

/// Rows of an embedding table for so many ids, rounded up to a multiple of
/// tokenizer.vocab_multiple.
constexpr int64_t table_rows(int64_t num_ids, int64_t vocab_multiple) {
  return (num_ids + vocab_multiple - 1) / vocab_multiple * vocab_multiple;
}

/// `[tokenizer]`: from text to ids and back.
struct TokenizerOptions {
  /// Options of other sections may say "char" and "word" too (text/text_tokenizer_options.h): one
  /// vocabulary, whose file is `model`, or which is made from the training text.
  std::string type = "sentencepiece";
  std::string algorithm = "bpe";
  bool joint = true;
  int64_t vocab_size = 8000;
  double character_coverage = 1.0;
  int64_t max_training_lines = 2000000;
  std::string lowercase = "auto";
  std::string model, src_model, tgt_model, merges;
  std::string src_vocab, tgt_vocab;
  std::string subwords = "auto";
  int64_t vocab_multiple = 8;

  static auto fields() {
    using namespace config;
    using O = TokenizerOptions;
    const Meta path{.is_path = true};
    return Fields{
        field(&O::type, "type",
              "sentencepiece, wordpiece (BERT's), byte_bpe (GPT-2's): raw text in, pieces trained "
              "or loaded; vocab: text is already split at spaces, ids come from a vocabulary file",
              one_of({"sentencepiece", "wordpiece", "byte_bpe", "vocab"}))
            .also_called({"name", "tokenizer_type", "tokenizer_name"})
            .value_also_called("sentencepiece", {"spm", "sp", "sentence_piece", "raw"})
            .value_also_called("sentencepiece", {"bpe"},
                               "tokenizer.algorithm = \"bpe\" is its default")
            .value_also_called("sentencepiece", {"unigram"},
                               "with tokenizer.algorithm = \"unigram\"")
            .value_also_called("wordpiece", {"bert", "word_piece"})
            .value_also_called("byte_bpe",
                               {"gpt2", "roberta", "byte_level_bpe", "bbpe", "byte_level"})
            .value_also_called("vocab", {"subword_nmt"},
                               "text that `subword-nmt apply-bpe` has split")
            .value_also_called("vocab", {"fastbpe"}, "text that is split already")
            .value_also_called("vocab",
                               {"vocabulary", "word", "words", "space", "whitespace", "none"}),
        field(&O::algorithm, "algorithm", "how a SentencePiece model is trained",
              one_of({"bpe", "unigram"}))
            .also_called({"model_type", "subword_type", "spm_model_type"})
            .value_also_called("bpe", {"byte_pair", "byte_pair_encoding"})
            .value_also_called("unigram", {"ulm", "unigram_lm"}),
        field(&O::joint, "joint", "one vocabulary for both sides")
            .also_called({"joined_dictionary", "share_vocab", "shared_vocab", "share_vocabulary",
                          "joint_vocab"}),
        field(&O::vocab_size, "vocab_size", "pieces of a trained model, specials included",
              between(16, 1000000), {.unit = "pieces"})
            .also_called({"bpe_size", "num_merges", "bpe_codes", "num_symbols", "dim_vocabs",
                          "src_vocab_size", "tgt_vocab_size", "nwordssrc", "nwordstgt",
                          "bpe_operations", "vocabulary_size"}),
        field(&O::character_coverage, "character_coverage",
              "share of characters that get a piece of their own", between(0.98, 1.0))
            .also_called({"coverage"}),
        field(&O::max_training_lines, "max_training_lines",
              "lines of each side, drawn by seed, that train the model", at_least(1),
              {.unit = "lines"})
            .also_called({"input_sentence_size", "sentencepiece_max_lines"}),
        field(&O::lowercase, "lowercase",
              "of type wordpiece: lower case without accents. auto: yes for a trained one, and as "
              "the pieces of a vocab.txt show",
              one_of({"auto", "yes", "no"}))
            .also_called({"do_lower_case", "do_lowercase", "uncased"}),
        field(&O::model, "model",
              "existing model for both sides: a SentencePiece model, a tokenizer.json, BERT's "
              "vocab.txt, GPT-2's vocab.json",
              any(), path)
            .also_called({"sentencepiece_model", "spm_model", "bpe_model", "model_file",
                          "tokenizer_file", "tokenizer_path"}),
        field(&O::src_model, "src_model", "existing model of the source", any(), path)
            .also_called({"src_subword_model", "source_spm"}),
        field(&O::tgt_model, "tgt_model", "existing model of the target", any(), path)
            .also_called({"tgt_subword_model", "target_spm"}),
        field(&O::merges, "merges", "of a vocab.json; empty = the merges.txt beside it", any(),
              path)
            .also_called({"merges_file", "vocab_bpe", "gpt2_vocab_bpe"}),
        field(&O::src_vocab, "src_vocab",
              "vocabulary of the source, one token a line, or a fairseq dict.txt", any(), path)
            .also_called(
                {"srcdict", "vocab_file", "vocabs", "dict", "dictionary", "vocab", "source_vocab"}),
        field(&O::tgt_vocab, "tgt_vocab", "vocabulary of the target; empty = src_vocab", any(),
              path)
            .also_called({"tgtdict", "target_vocab"}),
        field(&O::subwords, "subwords",
              "of type vocab: how the text was split into sub-words, which are joined in "
              "translations and for scores. bpe: `hou@@ se`; sentencepiece: `▁hou se`; wordpiece: "
              "`hou ##se`; none: tokens stay as they are; auto: as the vocabulary shows",
              one_of({"auto", "none", "bpe", "sentencepiece", "wordpiece"}),
              {.change = Change::kScoring})
            .also_called({"remove_bpe", "post_process", "bpe_symbol", "joiner"}),
        field(&O::vocab_multiple, "vocab_multiple",
              "embedding rows are rounded up to a multiple of this", between(1, 1024))
            .also_called({"padding_factor", "vocab_size_multiple", "pad_to_multiple_of",
                          "pad_vocab_size_multiple"}),
    };
  }
};

}  // namespace stretto::text
