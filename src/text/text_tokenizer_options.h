#pragma once

#include <cstdint>
#include <string>

#include "config/field.h"
#include "text/tokenizer_options.h"

namespace stretto::text {

/// `[tokenizer]` of tasks that understand text in one vocabulary.
struct TextTokenizerOptions {
  std::string type = "wordpiece";
  int64_t vocab_size = 8000;
  std::string algorithm = "bpe";
  int64_t max_training_lines = 2000000;
  std::string lowercase = "auto";
  std::string model, merges;
  int64_t vocab_multiple = 8;

  /// As text/tokenizer.h takes them: both sides have the one tokenizer.
  TokenizerOptions tokenizer_options() const {
    TokenizerOptions options;
    options.type = type;
    options.algorithm = algorithm;
    options.joint = true;
    options.vocab_size = vocab_size;
    options.max_training_lines = max_training_lines;
    options.lowercase = lowercase;
    options.model = model;
    options.merges = merges;
    options.vocab_multiple = vocab_multiple;
    options.subwords = "none";  // of a vocabulary of words
    return options;
  }

  static auto fields() {
    using namespace config;
    using O = TextTokenizerOptions;
    const Meta path{.is_path = true};
    return Fields{
        field(&O::type, "type",
              "wordpiece (BERT's), byte_bpe (GPT-2's and RoBERTa's), sentencepiece, char (each "
              "character) or word (what stands between spaces): trained on the training text, or "
              "loaded",
              one_of({"wordpiece", "byte_bpe", "sentencepiece", "char", "word"}))
            .also_called({"name", "tokenizer_type", "tokenizer_name"})
            .value_also_called("wordpiece", {"bert", "word_piece"})
            .value_also_called("byte_bpe",
                               {"gpt2", "roberta", "byte_level_bpe", "bbpe", "byte_level"})
            .value_also_called("sentencepiece", {"spm", "sp", "sentence_piece"})
            .value_also_called("char", {"character", "characters", "chars", "char_level"})
            .value_also_called("word", {"words", "space", "whitespace", "vocabulary"}),
        field(&O::vocab_size, "vocab_size",
              "pieces of a trained model, specials included; of char and word the most that there "
              "may be",
              between(16, 1000000), {.unit = "pieces"})
            .also_called({"bpe_size", "num_merges", "num_symbols", "vocabulary_size",
                          "output_dictionary_size", "ntoken"}),
        field(&O::algorithm, "algorithm", "how a SentencePiece model is trained",
              one_of({"bpe", "unigram"}))
            .also_called({"model_type", "subword_type", "spm_model_type"})
            .value_also_called("unigram", {"ulm", "unigram_lm"})
            .read_with("type", {"sentencepiece"}),
        field(&O::max_training_lines, "max_training_lines",
              "lines, drawn by seed, that train the model", at_least(1), {.unit = "lines"})
            .also_called({"input_sentence_size", "sentencepiece_max_lines"}),
        field(&O::lowercase, "lowercase",
              "of type wordpiece: lower case without accents. auto: yes for a trained one, and as "
              "the pieces of a vocab.txt show",
              one_of({"auto", "yes", "no"}))
            .also_called({"do_lower_case", "do_lowercase", "uncased"}),
        field(&O::model, "model",
              "existing model: a tokenizer.json, BERT's vocab.txt, GPT-2's vocab.json, a "
              "SentencePiece model, a JSON list of characters; of type word a list of words; empty "
              "= one is trained",
              any(), path)
            .also_called({"sentencepiece_model", "spm_model", "bpe_model", "model_file",
                          "tokenizer_file", "tokenizer_path", "vocab_file", "vocab"}),
        field(&O::merges, "merges", "of a vocab.json; empty = the merges.txt beside it", any(),
              path)
            .also_called({"merges_file", "vocab_bpe", "gpt2_vocab_bpe"}),
        field(&O::vocab_multiple, "vocab_multiple",
              "embedding rows are rounded up to a multiple of this", between(1, 1024))
            .also_called({"padding_factor", "vocab_size_multiple", "pad_to_multiple_of",
                          "pad_vocab_size_multiple"}),
    };
  }
};

}  // namespace stretto::text
