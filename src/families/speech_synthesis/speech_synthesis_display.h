#pragma once

#include <vector>

#include "experiment/score_spec.h"
#include "report/display.h"

namespace stretto::tasks {

/// Keys of scores of speech_synthesis.
namespace synthesis_score {
inline constexpr const char *kLoss = "loss", *kMelL1 = "mel_l1", *kStopError = "stop_error",
                            *kDiagonality = "attention_diagonality",
                            *kMonotonic = "monotonic_steps";
}  // namespace synthesis_score

/// The names of its counters (train::Task::counters); as keys they have `_` for spaces.
namespace synthesis_count {
inline constexpr const char *kFrames = "frames", *kClips = "clips",
                            *kUnreadable = "unreadable clips";
}  // namespace synthesis_count

/// The numbers of speech_synthesis.
std::vector<experiment::ScoreSpec> speech_synthesis_scores();

/// How its numbers and samples are told and drawn; no libtorch.
report::Display speech_synthesis_display();

}  // namespace stretto::tasks
