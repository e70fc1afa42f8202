#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "audio/sound_features.h"
#include "data/batch.h"
#include "data/speech/speech_set.h"
#include "families/speech_recognition/speech_recognition_options.h"
#include "train/prepared.h"

/// From a batch of numbered utterances to the frames that a model sees.
///
/// Shape letters: U utterances that can be used, N frames of all of them, F features of a frame.
namespace stretto::tasks {

/// What stands in the column data::kUtteranceLength for an utterance that cannot be used: its sound
/// could not be read; or it has too few frames for its text, in training.
inline constexpr int64_t kUnreadLength = -1, kTooShortLength = -2;

/// The rows of a prepared batch: U sequences, those of the utterances that can be used, in the
/// order of the batch.
inline constexpr size_t kFrameRows = 0;   ///< values [N, F]; keys in training
inline constexpr size_t kTargetRows = 1;  ///< ids of the text, or one label

/// How sounds become frames.
struct FrameMaker {
  const data::SpeechSet& set;
  const audio::SoundFeatures& sounds;
  const experiment::SpeechRecognitionOptions& own;
  uint64_t seed = 0;  ///< of samples that stand for several sounds, in training (data::SampleDraw)
};

/// Utterances as training has them, augmented by (seed, Batch::epoch, sample). One that cannot be
/// used keeps its place in the batch, where its length says why, and has no rows.
train::Prepared prepare_training_utterances(data::Batch batch, const FrameMaker& maker);

/// As validation has them; those that cannot be read have no rows.
train::Prepared prepare_test_utterances(data::Batch batch, const FrameMaker& maker);

/// Whether frames are enough for a target: of a label one row behind the model, of a text as many
/// as CTC needs.
bool fits(const experiment::SpeechRecognitionOptions& own, int64_t num_frames,
          std::span<const int64_t> target);

/// Utterances of a batch whose column of lengths has this value.
int64_t count_lengths(const data::Batch& batch, int64_t value);
/// The utterances of a batch that can be used, and the ids of their targets.
struct UsableCounts {
  int64_t utterances = 0, ids = 0;
};
UsableCounts usable_counts(const data::Batch& batch);

}  // namespace stretto::tasks
