#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "text/text_rules.h"
#include "text/tokenizer_options.h"

namespace stretto::text {

/// `[tokenizer]` of tasks whose texts are said: which units a text becomes, and by which rules it
/// is written before.
struct TargetOptions {
  std::string type = "char";
  std::string alphabet;
  std::vector<std::string> normalise{"nfkc", "lower", "spaces"};
  std::string unknown = "drop";
  std::string lexicon;
  std::string word_boundary;
  int64_t vocab_size = 1000;
  std::string algorithm = "bpe";
  int64_t max_training_lines = 2000000;
  std::string model;
  int64_t vocab_multiple = 8;

  /// As text/tokenizer.h takes them: both sides have the one tokenizer.
  TokenizerOptions tokenizer_options() const {
    TokenizerOptions options;
    options.type = type == "phonemes" ? "word" : type;
    options.algorithm = algorithm;
    options.joint = true;
    options.vocab_size = vocab_size;
    options.max_training_lines = max_training_lines;
    options.model = model;
    options.vocab_multiple = vocab_multiple;
    options.subwords = "none";
    return options;
  }

  static auto fields() {
    using namespace config;
    using O = TargetOptions;
    const Meta path{.is_path = true};
    return Fields{
        field(&O::type, "type",
              "char: each character; sentencepiece, byte_bpe: sub-words; word: what stands between "
              "spaces; phonemes: the same, where texts are phonemes, or a lexicon gives those of "
              "each word. Trained on the training text, or loaded",
              one_of({"char", "sentencepiece", "byte_bpe", "word", "phonemes"}))
            .also_called({"name", "tokenizer_type", "token_type", "labels_type"})
            .value_also_called("char", {"character", "characters", "chars", "letters"})
            .value_also_called("sentencepiece", {"bpe", "spm", "sp", "unigram", "subwords"})
            .value_also_called("word", {"words", "label", "labels"})
            .value_also_called("phonemes", {"phoneme", "phone", "phones", "phn"}),
        field(&O::alphabet, "alphabet",
              "of char: the characters, such as \" 'abcdefghijklmnopqrstuvwxyz\"; empty = those of "
              "the training texts")
            .also_called({"characters", "vocabulary", "symbols", "charset"})
            .read_with("type", {"char"}),
        field(&O::normalise, "normalise",
              "rules by which a text is written anew, in this order: " + text_rule_help(),
              one_of(text_rule_names()))
            .also_called({"normalize", "normalizer", "text_cleaners", "cleaners", "text_cleaning"}),
        field(
            &O::unknown, "unknown",
            "what becomes of characters that the tokenizer lacks, and of words that the lexicon "
            "lacks. drop: they are left out of the text. keep: each is <unk>. skip: the utterance "
            "is left out. All are counted and shown",
            one_of({"drop", "keep", "skip"})),
        field(&O::lexicon, "lexicon",
              "of phonemes: a file whose lines are a word and its phonemes, as CMUdict; the first "
              "of several pronunciations counts. Empty = texts are phonemes",
              any(), path)
            .also_called({"pronunciations", "phoneme_dict", "cmudict", "dictionary"})
            .read_with("type", {"phonemes"}),
        field(&O::word_boundary, "word_boundary",
              "with a lexicon: the phoneme that stands between two words; empty = none")
            .also_called({"word_separator", "sil_token"})
            .read_with("type", {"phonemes"}),
        field(&O::vocab_size, "vocab_size",
              "pieces of a trained model, specials included; of char, word and phonemes the most "
              "that there may be",
              between(8, 1000000), {.unit = "pieces"})
            .also_called({"bpe_size", "num_merges", "num_symbols", "vocabulary_size"}),
        field(&O::algorithm, "algorithm", "how a SentencePiece model is trained",
              one_of({"bpe", "unigram"}))
            .also_called({"model_type", "subword_type", "spm_model_type"})
            .read_with("type", {"sentencepiece"}),
        field(&O::max_training_lines, "max_training_lines",
              "texts, drawn by seed, that train the model", at_least(1), {.unit = "lines"})
            .also_called({"input_sentence_size", "sentencepiece_max_lines"}),
        field(&O::model, "model",
              "existing model: a JSON list of characters, a SentencePiece model, a tokenizer.json; "
              "of word and phonemes a list of them, one a line; empty = one is trained",
              any(), path)
            .also_called({"sentencepiece_model", "spm_model", "bpe_model", "model_file",
                          "tokenizer_file", "vocab_file", "vocab", "phonemes"}),
        field(&O::vocab_multiple, "vocab_multiple",
              "embedding rows are rounded up to a multiple of this", between(1, 1024))
            .also_called({"padding_factor", "pad_to_multiple_of"}),
    };
  }
};

}  // namespace stretto::text
