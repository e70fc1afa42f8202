#pragma once

#include <cstdint>

#include "data/labelled/labels.h"
#include "data/speech/speech_set.h"
#include "families/speech_recognition/speech_recognition_options.h"
#include "text/target_options.h"

/// Sizes and names that configuration and data tell; no libtorch.
namespace stretto::experiment {

/// The texts of a set as labels, by the rules of `tokenizer.normalise`, in the order of
/// data::Labels::sorted(). Throws Error(kUsage) for less than two.
data::Labels labels_of_texts(const data::SpeechSet& set, const text::TargetOptions& options);

/// Frames of an utterance of middling length: what the cost of a model is told for.
double usual_frames(const SpeechRecognitionOptions& own);

/// Frames of a second.
double frames_per_second(const SpeechRecognitionOptions& own);

}  // namespace stretto::experiment
