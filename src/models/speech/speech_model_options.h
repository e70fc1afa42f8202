#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/choice.h"
#include "models/speech/conformer_options.h"
#include "models/speech/deepspeech2_options.h"
#include "models/speech/jasper_options.h"
#include "models/speech/las_options.h"
#include "models/speech/quartznet_options.h"
#include "models/speech/square_resnet_options.h"
#include "models/speech/wave2letter_options.h"
#include "nn/adapter_options.h"
#include "nn/lora_options.h"

namespace stretto::models {

/// `[model]` of a model that reads text, or a label, from frames of speech, as `model.name` says.
/// All kinds have `init`.
///
/// A further kind is one more alternative here, and an overload in models/speech/speech_shapes.cpp,
/// models/speech/speech_conflicts.cpp and models/speech/speech_model.cpp, without which nothing
/// compiles.
using SpeechModelOptions =
    config::Choice<DeepSpeech2Options, Wave2LetterOptions, JasperOptions, QuartzNetOptions,
                   ConformerOptions, LasOptions, SquareResNetOptions>;

/// The declaration of such a `[model]`, with what its names are called elsewhere.
template <class Declared>
Declared with_speech_names_elsewhere(Declared model) {
  return std::move(model)
      .value_also_called("deepspeech2", {"ds2", "deep_speech", "deepspeech"},
                         "model.preset names its size")
      .value_also_called("wave2letter", {"w2l", "wav2letter", "w2l_plus", "wave2letter_plus"},
                         "model.preset names its size")
      .value_also_called("jasper", {"jasper10x5dr", "jasper_mini"}, "model.preset names its size")
      .value_also_called("quartznet", {"quartznet15x5"}, "model.preset names its size")
      .value_also_called("conformer", {"conformer_ctc", "conformer_small", "conformer_medium"},
                         "model.preset names its size")
      .value_also_called("resnet", {"resnet50", "resnet34", "resnet18"},
                         "model.preset names its depth and form")
      .value_also_called("las", {"listen_attend_spell", "joint_ctc_attention", "jca"});
}

inline const std::vector<std::string>& init_of(const SpeechModelOptions& options) {
  return options.visit(
      [](const auto& kind) -> const std::vector<std::string>& { return kind.init; });
}
/// Off where the kind has no such key.
inline nn::LoraOptions lora_of(const SpeechModelOptions& options) {
  return options.visit([](const auto& kind) {
    if constexpr (requires { kind.lora; }) {
      return kind.lora;
    } else {
      return nn::LoraOptions{};
    }
  });
}
inline nn::AdapterOptions adapter_of(const SpeechModelOptions& options) {
  return options.visit([](const auto& kind) {
    if constexpr (requires { kind.adapter; }) {
      return kind.adapter;
    } else {
      return nn::AdapterOptions{};
    }
  });
}

/// The attention decoder beside CTC; off where the kind has none.
inline AttentionDecoderOptions decoder_of(const SpeechModelOptions& options) {
  return options.visit([](const auto& kind) {
    if constexpr (requires { kind.decoder; }) {
      return kind.decoder;
    } else {
      return AttentionDecoderOptions{};
    }
  });
}

/// What a model is, as far as its options alone tell. The functions below need no libtorch, so that
/// `check`, `plan` and the counting of pairs that CTC cannot align have them too. They are for
/// options without conflicts (models/speech/speech_conflicts.h).

/// The blocks that an options struct of such ones comes to: its own, or its preset's.
std::vector<ConvBlockOptions> blocks_of(const Wave2LetterOptions& options);
std::vector<ConvBlockOptions> blocks_of(const JasperOptions& options);
std::vector<ConvBlockOptions> blocks_of(const QuartzNetOptions& options);
std::vector<ConvBlockOptions> blocks_of(const LasOptions& options);

/// Rows that come out for an utterance of so many frames, at least 0.
int64_t output_length(const SpeechModelOptions& options, int64_t frames);

/// How many frames one row stands for: the product of all strides. Row t begins at frame
/// t * frames_per_row.
int64_t frames_per_row(const SpeechModelOptions& options);

/// Whether an utterance becomes one row as a whole, so that it has one label and no text.
bool reads_as_a_whole(const SpeechModelOptions& options);

/// Whether the model normalises over the rows of a batch, so that a micro-batch is part of what is
/// learned.
bool has_batch_norm(const SpeechModelOptions& options);

/// Why the model cannot be given an utterance in pieces, a sentence without its full stop; empty =
/// it can.
std::string stream_problem(const SpeechModelOptions& options);

/// How many frames after frame t * frames_per_row have to be there before row t is certain. 0 where
/// stream_problem() is not empty.
int64_t stream_delay(const SpeechModelOptions& options);

/// The number of features that the model is published with: what `plan` assumes where nothing else
/// says one.
int64_t usual_features_of(const SpeechModelOptions& options);

}  // namespace stretto::models
