#pragma once

#include <cstdint>
#include <string>

#include "config/field.h"
#include "data/pairs/data_options.h"
#include "decoding/decode_options.h"
#include "experiment/experiment.h"
#include "families/text/text_eval_options.h"
#include "losses/cross_entropy_options.h"
#include "models/seq2seq_options.h"
#include "text/tokenizer_options.h"

namespace stretto::experiment {

/// What `[task]` has for translation.
struct LanguageOptions {
  std::string src_lang;
  std::string tgt_lang;

  static auto fields() {
    using namespace config;
    using O = LanguageOptions;
    return Fields{
        field(&O::src_lang, "src_lang", "name of the source language, for people", any(),
              {.change = Change::kFree})
            .also_called({"source_lang", "source_language"}),
        field(&O::tgt_lang, "tgt_lang", "name of the target language, for people", any(),
              {.change = Change::kFree})
            .also_called({"target_lang", "target_language"}),
    };
  }
};

/// What `[eval]` has for translation, beside experiment/eval_options.h.
struct TranslationScoreOptions {
  bool bleu = true;
  int64_t bleu_sentences = 0;
  int64_t max_tokens = 4096;
  int64_t max_samples = 0;

  static auto fields() {
    using namespace config;
    using O = TranslationScoreOptions;
    return Fields{
        field(&O::bleu, "bleu", "translate the validation set and score it with BLEU", any(),
              {.change = Change::kScoring})
            .also_called({"eval_bleu", "predict_with_generate"}),
        field(&O::bleu_sentences, "bleu_sentences",
              "translate only the first N validation sentences while training; 0 = all",
              at_least(0), {.unit = "sentences", .change = Change::kScoring}),
        field(&O::max_tokens, "max_tokens", "bound of one validation batch", at_least(1),
              {.unit = "tokens", .change = Change::kScoring})
            .also_called({"max_tokens_valid"}),
        eval_max_samples_field<O>(),
    };
  }
};

/// The sections of a configuration with `task.name = "translation"`, beside those that every
/// experiment has.
struct TranslationOptions {
  static constexpr const char* kName = "translation";

  LanguageOptions task;
  data::DataOptions data;
  text::TokenizerOptions tokenizer;
  models::Seq2SeqOptions model;
  losses::CrossEntropyOptions loss;
  TranslationScoreOptions eval;
  decoding::DecodeOptions decode;

  static auto fields() {
    using config::field;
    using O = TranslationOptions;
    return config::Fields{
        field(&O::task, "task", "what is learned"),
        field(&O::data, "data", "text, read in place")
            .also_called({"dataset", "corpus", "corpora", "datasets"}),
        field(&O::tokenizer, "tokenizer", "from text to ids and back")
            .also_called({"vocab", "vocabulary", "sentencepiece"}),
        field(&O::model, "model", "the network").also_called({"network", "architecture"}),
        field(&O::loss, "loss", "what is minimised").also_called({"criterion", "objective"}),
        field(&O::eval, "eval", "validation while training"),
        field(&O::decode, "decode", "from a model to sentences")
            .also_called({"decoding", "generation", "inference", "translate", "beam_search"}),
    };
  }
};

/// The sections of translation. Throws std::bad_variant_access for another family.
inline const TranslationOptions& translation_of(const Experiment& experiment) {
  return experiment.task.as<TranslationOptions>();
}
inline TranslationOptions& translation_of(Experiment& experiment) {
  return experiment.task.as<TranslationOptions>();
}

}  // namespace stretto::experiment
