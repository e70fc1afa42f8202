#pragma once

#include <cstddef>
#include <cstdint>

#include "data/batch.h"
#include "families/speech_synthesis/engine/voice_set.h"
#include "families/speech_synthesis/voice_frames.h"
#include "models/synthesis/synthesis_model.h"
#include "train/prepared.h"

/// From a batch of numbered clips to symbols and frames.
///
/// Shape letters: B clips that could be read, N frames of them.
namespace stretto::tasks {

/// Behind the columns of data/speech/speech_batches.h, in prepared batches: the frames of a clip,
/// int64, one row; 0 for one that cannot be read.
inline constexpr size_t kClipFrames = 2;

/// What a prepared batch is for.
enum class VoiceUse : uint8_t { kTraining, kScoring };

/// Reads and trims the clips of a batch, and makes their frames: in training with dither, by (seed,
/// Batch::epoch, clip). Clips that cannot be read have no symbols and no frames.
train::Prepared prepare_voice_batch(data::Batch batch, const VoiceSet& set,
                                    const experiment::VoiceFrames& frames, VoiceUse use);

/// Clips of a prepared batch that could be read, B.
int64_t num_readable_clips(const data::Batch& batch);
/// Frames of a prepared batch, N.
int64_t num_clip_frames(const data::Batch& batch);

/// Symbols, speakers and style of a prepared batch, of which some clip could be read. The style of
/// a clip is its own.
models::SynthesisInput voice_input(const train::Prepared& batch,
                                   const models::SynthesisModel& model, int64_t seed);
/// Its frames, values [N, W + F].
inline const nn::PackedRows& voice_targets(const train::Prepared& batch) {
  return batch.rows(1);
}

}  // namespace stretto::tasks
