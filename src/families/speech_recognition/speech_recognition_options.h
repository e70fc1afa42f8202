#pragma once

#include <string>

#include "audio/augment_keys.h"
#include "audio/feature_keys.h"
#include "config/field.h"
#include "ctc/ctc_options.h"
#include "data/speech/speech_data_options.h"
#include "experiment/experiment.h"
#include "models/speech/speech_model_options.h"
#include "text/target_options.h"

namespace stretto::experiment {

/// `[decode]`: from a trained model to texts.
struct SpeechDecodeOptions : ctc::CtcOptions {
  using Inherited = ctc::CtcOptions;

  std::string reader = "ctc";
  std::string lm_run;
  double length_penalty = 0;
  double ctc_weight = 0;
  double stream_delay = 2;

  /// Whether texts are made of the words of a lexicon.
  bool reads_with_lexicon() const {
    return reader == "ctc" && method == "beam" && (!lexicon.empty() || lexicon_from_lm);
  }

  static auto fields() {
    using namespace config;
    using O = SpeechDecodeOptions;
    const Meta scoring{.change = Change::kScoring};
    return Fields{
        field(&O::reader, "reader",
              "ctc: texts are made of the scores of frames. attention: the attention decoder of a "
              "model that has one writes them (model.decoder.weight), with a beam of beam_size "
              "where method is beam",
              one_of({"ctc", "attention"}), scoring)
            .also_called({"decoder_type", "decoder_name"}),
        field(&O::lm_run, "lm_run",
              "run of a language model of this program over the recogniser's tokens, in the place "
              "of lm",
              any(), {.change = Change::kScoring, .is_path = true})
            .also_called({"neural_lm", "rnnlm", "lm_checkpoint"})
            .read_with("method", {"beam"}),
        field(&O::length_penalty, "length_penalty",
              "of the attention decoder: scores are divided by length^a", at_least(0), scoring)
            .also_called({"lenpen", "length_alpha"})
            .read_with("reader", {"attention"}),
        field(&O::ctc_weight, "ctc_weight",
              "of the attention decoder: a text has the score (1 - weight) of attention and weight "
              "of CTC, over all alignments (Watanabe et al. 2017); 0 = attention alone, as "
              "OpenSeq2Seq; 0.3 is usual",
              fraction(), scoring)
            .also_called({"ctc_decode_weight", "decode_ctc_weight"})
            .read_with("reader", {"attention"}),
        field(&O::stream_delay, "stream_delay",
              "`infer --stream` with a beam: words that ended so long ago are settled for the best "
              "hypothesis; 0 = when nothing can change them any more",
              at_least(0), {.unit = "seconds", .change = Change::kScoring})
            .also_called({"max_delay", "latency"})
            .read_with("method", {"beam"}),
    }
        .with(ctc::CtcOptions::fields());
  }
};

/// `[loss]`: what is minimised.
struct SpeechLossOptions {
  std::string name = "ctc";
  std::string divided_by = "labels";

  static auto fields() {
    using namespace config;
    using O = SpeechLossOptions;
    return Fields{
        field(&O::name, "name",
              "ctc: the labels of a text, whose places are not known. label: the text as a whole "
              "is one of some classes, as in speech commands",
              one_of({"ctc", "label"}))
            .also_called({"type", "task_type"})
            .value_also_called("ctc", {"ctc_loss", "transcript"})
            .value_also_called("label", {"cross_entropy", "classification", "commands"}),
        field(&O::divided_by, "divided_by",
              "the loss of an update is the mean over labels, or over utterances, as OpenSeq2Seq "
              "and warp-ctc have it: long texts then count more, and the loss is larger",
              one_of({"labels", "utterances"}))
            .also_called({"reduction", "ctc_reduction", "normalize_by"})
            .value_also_called("utterances", {"batch", "samples", "mean_batch"})
            .value_also_called("labels", {"tokens", "targets", "length"})
            .read_with("name", {"ctc"}),
    };
  }
};

/// What `[eval]` has beside experiment/eval_options.h.
struct SpeechEvalOptions {
  std::string normalize = "none";
  double batch_seconds = 0;

  static auto fields() {
    using namespace config;
    using O = SpeechEvalOptions;
    return Fields{
        field(&O::normalize, "normalize",
              "what is made of transcripts before errors are counted, as jiwer does it; "
              "standardize: lower case, contractions in full, marks in <> or [] left out",
              one_of({"none", "standardize"}), {.change = Change::kScoring})
            .also_called({"wer_standardize", "normalizer"}),
        field(&O::batch_seconds, "batch_seconds",
              "seconds of the sounds of one validation batch; 0 = as data.batch_seconds",
              at_least(0), {.unit = "seconds", .change = Change::kScoring})
            .also_called({"eval_batch_size", "valid_batch_size", "validation_batch_size",
                          "per_device_eval_batch_size", "test_batch_size"},
                         "in seconds of sound"),
    };
  }
};

/// The sections of a configuration with `task.name = "speech_recognition"`, beside those that every
/// experiment has.
struct SpeechRecognitionOptions {
  static constexpr const char* kName = "speech_recognition";

  data::SpeechDataOptions data;
  audio::FeatureKeys features;
  audio::AugmentKeys augment;
  text::TargetOptions tokenizer;
  models::SpeechModelOptions model;
  SpeechLossOptions loss;
  SpeechDecodeOptions decode;
  SpeechEvalOptions eval;

  /// Whether an utterance has one label in the place of a text.
  bool has_label() const { return loss.name == "label"; }
  /// Whether the loss is divided by utterances, and not by the labels of their texts.
  bool is_per_utterance() const { return has_label() || loss.divided_by == "utterances"; }

  /// Whether what is written are phonemes, although the data have words.
  bool writes_phonemes() const {
    return !has_label() && tokenizer.type == "phonemes" && !tokenizer.lexicon.empty() &&
           !decode.reads_with_lexicon();
  }

  static auto fields() {
    using config::field;
    using O = SpeechRecognitionOptions;
    return config::Fields{
        field(&O::data, "data", "sounds, and what is said in them")
            .also_called({"dataset", "datasets"}),
        field(&O::features, "features", "what the model sees of a sound")
            .also_called({"preprocessor", "frontend", "featurizer", "audio"}),
        field(&O::augment, "augment", "random changes of sounds in training")
            .also_called({"augmentation", "spec_augment", "specaug", "spec_augmentation"}),
        field(&O::tokenizer, "tokenizer", "from texts to labels")
            .also_called({"labels", "vocabulary", "text"}),
        models::with_speech_names_elsewhere(field(&O::model, "model", "the network"))
            .also_called({"network", "architecture", "encoder"}),
        field(&O::loss, "loss", "what is minimised").also_called({"criterion", "objective"}),
        field(&O::decode, "decode", "from a trained model to texts")
            .also_called({"decoding", "decoder", "beam_search", "generation"}),
        field(&O::eval, "eval", "validation while training"),
    };
  }
};

inline const SpeechRecognitionOptions& speech_of(const Experiment& experiment) {
  return experiment.task.as<SpeechRecognitionOptions>();
}

}  // namespace stretto::experiment
