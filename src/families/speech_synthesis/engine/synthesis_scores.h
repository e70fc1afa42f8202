#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/batch_source.h"
#include "families/speech_synthesis/engine/voice_set.h"
#include "families/speech_synthesis/speech_synthesis_options.h"
#include "families/speech_synthesis/voice_frames.h"
#include "models/synthesis/synthesis_model.h"
#include "train/evaluation.h"
#include "train/task.h"

namespace stretto::tasks {

/// The numbers of a clip under teacher forcing, as columns of a table. All are 0 for one that
/// cannot be read or used.
enum SynthesisNumber : int64_t {
  kClipLoss = 0,      ///< summed over its frames
  kClipL1,            ///< of frames behind the post-net, summed over its frames
  kClipLength,        ///< its frames; 0 = it was not read
  kClipStop,          ///< the first frame that ends it, counted from 1; 0 = none does
  kClipStopsWrongly,  ///< 1 where that is more than kStopTolerance from its last frame, or missing
  kClipDiagonality,   ///< models::AttentionShape
  kClipMonotonic,
  kClipOverflowed,  ///< 1 where some number is infinite or NaN
  kNumSynthesisNumbers
};

/// Seconds that an end may be early or late.
inline constexpr double kStopTolerance = 0.1;

/// Clips in batches for evaluation.
struct VoiceBatches {
  VoiceSet set;
  std::unique_ptr<data::BatchSource> batches;
};
VoiceBatches scored_batches(VoiceSet set, const experiment::SpeechSynthesisOptions& own);

/// The numbers of a set, by number of clip. Its batches are shared out among processes
/// (train/evaluation.h); a clip has the same numbers in every batch, but for the rounding of
/// products. Collective.
train::ScoreTable score_voice(models::SynthesisModel& model, const VoiceBatches& spoken,
                              const experiment::VoiceFrames& frames,
                              const experiment::SpeechSynthesisOptions& own,
                              train::EvaluationSetup setup);

/// Scores as speech_synthesis_scores() lists them, of the clips that were read.
std::vector<train::Score> scores_of_voice(const train::ScoreTable& table, const VoiceSet& set);
/// Samples of a set that were read.
int64_t num_read_clips(const train::ScoreTable& table, const VoiceSet& set);

}  // namespace stretto::tasks
