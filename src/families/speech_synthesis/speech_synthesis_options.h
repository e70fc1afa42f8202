#pragma once

#include <cstdint>

#include "audio/feature_keys.h"
#include "audio/griffin_lim_options.h"
#include "config/field.h"
#include "data/speech/speech_data_options.h"
#include "experiment/experiment.h"
#include "models/synthesis/synthesis_options.h"
#include "text/target_options.h"

namespace stretto::experiment {

/// `[features]`: the frames that a model learns to write. Defaults are those of NVIDIA's Tacotron 2
/// (hparams.py): logarithms of 80 mel bands of magnitudes, 1024 samples every 256 at 22.05 kHz.
struct SynthesisFeatureKeys : audio::FeatureKeys {
  using Inherited = audio::FeatureKeys;  // config counts its members too

  double magnitude_floor = 1e-5;
  double trim_decibels = 0;
  double trim_margin_seconds = 0.05;

  static auto fields() {
    using namespace config;
    using O = SynthesisFeatureKeys;
    return audio::FeatureKeys::fields().with(Fields{
        field(&O::magnitude_floor, "magnitude_floor",
              "of the logarithm of magnitudes, where model.spectrum has some", greater(0),
              {.hidden_in_shapes = true})
            .also_called({"mag_floor", "data_min_mag"})
            .read_with_key("model.spectrum", {"magnitude", "both"}),
        field(&O::trim_decibels, "trim_decibels",
              "silence at both ends of a clip is cut off: frames so far below the loudest one; 40 "
              "is usual, 0 = clips stay as they are. Long silence keeps a model from learning "
              "where speech ends",
              between(0, 120), {.unit = "dB"})
            .also_called({"trim_top_db", "trim_db", "silence_threshold"}),
        field(&O::trim_margin_seconds, "trim_margin_seconds", "of it that stays at either end",
              between(0, 10), {.unit = "seconds"})
            .also_called({"trim_margin", "silence_padding"})
            .read_unless_zero("trim_decibels"),
    });
  }
};

/// `[decode]`: when the model ends a sentence, and how frames become a sound.
struct SynthesisDecodeOptions : audio::GriffinLimOptions {
  using Inherited = audio::GriffinLimOptions;  // config counts its members too

  double stop_threshold = 0.5;
  double max_seconds = 20;
  double max_seconds_per_symbol = 0;
  int64_t steps_at_end = 0;
  int64_t max_samples = 16;
  int64_t seed = 1;

  static auto fields() {
    using namespace config;
    using O = SynthesisDecodeOptions;
    const Meta scoring{.change = Change::kScoring};
    const Meta seconds{.unit = "seconds", .change = Change::kScoring};
    return Fields{
        field(&O::stop_threshold, "stop_threshold",
              "a sentence ends with the first frame that is the last one with a higher probability",
              {.min = 0, .max = 1, .min_open = true, .max_open = true, .choices = {}}, scoring)
            .also_called({"gate_threshold", "stop_token_threshold", "threshold"}),
        field(&O::max_seconds, "max_seconds",
              "a sentence that has not ended is cut there, and reported",
              {.min = 0, .max = 3600, .min_open = true, .choices = {}}, seconds)
            .also_called({"max_decoder_steps", "max_iters", "max_length", "maxlenratio"},
                         "in seconds of sound"),
        field(&O::max_seconds_per_symbol, "max_seconds_per_symbol",
              "the same for each symbol of its text; 0 = max_seconds alone", between(0, 60),
              seconds),
        field(&O::steps_at_end, "steps_at_end",
              "a sentence also ends after so many steps in a row that attend to its last symbol "
              "most; 0 = the probability to end decides alone",
              between(0, 10000), scoring)
            .also_called({"attention_end_steps"}),
        field(&O::max_samples, "max_samples", "sentences that are spoken together", at_least(1),
              {.unit = "sentences", .change = Change::kScoring})
            .also_called({"batch_size", "infer_batch_size"}),
        field(&O::seed, "seed",
              "of the pre-net's dropout, which stays on, and of Griffin-Lim's first phases",
              at_least(0), scoring)
            .also_called({"random_seed"}),
    }
        .with(audio::GriffinLimOptions::phase_fields())
        .with(Fields{audio::GriffinLimOptions::mel_iterations_field().read_with_key(
            "model.spectrum", {"mel"})});
  }
};

/// What `[eval]` has beside experiment/eval_options.h.
struct SynthesisEvalOptions {
  double batch_seconds = 0;

  static auto fields() {
    using namespace config;
    using O = SynthesisEvalOptions;
    return Fields{
        field(&O::batch_seconds, "batch_seconds",
              "seconds of the clips of one validation batch; 0 = as data.batch_seconds",
              at_least(0), {.unit = "seconds", .change = Change::kScoring})
            .also_called({"eval_batch_size", "valid_batch_size", "validation_batch_size",
                          "per_device_eval_batch_size", "test_batch_size"},
                         "in seconds of sound"),
    };
  }
};

/// The sections of a configuration with `task.name = "speech_synthesis"`, beside those that every
/// experiment has.
struct SpeechSynthesisOptions {
  static constexpr const char* kName = "speech_synthesis";

  data::SpeechDataOptions data;
  SynthesisFeatureKeys features = usual_features();
  text::TargetOptions tokenizer;
  models::SynthesisModelOptions model;
  models::SynthesisLossOptions loss;
  SynthesisDecodeOptions decode;
  SynthesisEvalOptions eval;

  static SynthesisFeatureKeys usual_features() {
    SynthesisFeatureKeys keys;
    keys.rate = 22050;
    keys.window_seconds = 0.04644;  // 1024 samples
    keys.hop_seconds = 0.01161;     // 256
    keys.padding = "reflect";
    keys.preemphasis = 0;
    keys.power = 1;
    keys.high_hz = 8000;
    keys.floor = 1e-5;
    keys.normalise = "none";
    return keys;
  }

  static auto fields() {
    using config::field;
    using O = SpeechSynthesisOptions;
    return config::Fields{
        field(&O::data, "data", "clips, and what is said in them")
            .also_called({"dataset", "datasets"}),
        field(&O::features, "features", "the frames that the model writes")
            .also_called({"audio", "preprocessor", "frontend", "mel"}),
        field(&O::tokenizer, "tokenizer", "from texts to symbols")
            .also_called({"symbols", "vocabulary", "text"}),
        models::with_synthesis_names_elsewhere(field(&O::model, "model", "the network"))
            .also_called({"network", "architecture"}),
        field(&O::loss, "loss", "what is minimised").also_called({"criterion", "objective"}),
        field(&O::decode, "decode", "from a trained model to sounds")
            .also_called({"inference", "synthesis", "vocoder", "griffin_lim"}),
        field(&O::eval, "eval", "validation while training"),
    };
  }
};

inline const SpeechSynthesisOptions& synthesis_of(const Experiment& experiment) {
  return experiment.task.as<SpeechSynthesisOptions>();
}

}  // namespace stretto::experiment
