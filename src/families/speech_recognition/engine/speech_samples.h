#pragma once

#include <cstdint>
#include <vector>

#include "families/speech_recognition/engine/speech_run.h"
#include "families/speech_recognition/engine/speech_scores.h"
#include "families/speech_recognition/speech_recognition_options.h"
#include "report/sample.h"

/// What the report shows of utterances and of a model.
namespace stretto::tasks {

/// The utterances with the most errors, each with a player; in front of them the words that were
/// taken for others, or of labels the confusion matrix.
/// @param most  utterances, at most; 0 = nothing at all
std::vector<report::Sample> speech_samples(const SpeechEvaluation& evaluation,
                                           const SpokenSet& spoken,
                                           const experiment::SpeechRecognitionOptions& own,
                                           const SpeechUnits& units, int64_t most);

}  // namespace stretto::tasks
