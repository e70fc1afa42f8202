#pragma once

#include <vector>

#include "experiment/score_spec.h"
#include "report/display.h"

namespace stretto::tasks {

/// Keys of scores of speech_recognition.
namespace speech_score {
inline constexpr const char *kLoss = "loss", *kWer = "wer", *kCer = "cer", *kAccuracy = "accuracy";
}  // namespace speech_score

/// The names of its counters (train::Task::counters); as keys they have `_` for spaces.
inline constexpr const char *kHeardFrames = "frames", *kUtterances = "utterances",
                            *kWantedLabels = "labels", *kUnreadUtterances = "unreadable utterances",
                            *kTooShortUtterances = "utterances too short for their text";

/// Whether texts are written, or one label is chosen for an utterance.
enum class SpeechAnswer { kTranscript, kLabel };

/// The numbers of speech_recognition.
std::vector<experiment::ScoreSpec> speech_recognition_scores(SpeechAnswer answer);

/// How its numbers and samples are told and drawn; no libtorch.
/// @param loss_unit  what the loss is divided by: kWantedLabels or kUtterances
report::Display speech_recognition_display(SpeechAnswer answer, const char* loss_unit);

}  // namespace stretto::tasks
