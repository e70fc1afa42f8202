#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "data/batch_source.h"
#include "data/length_batches.h"

namespace stretto::data {

/// The columns of a batch of utterances. Frames are made of its ids where the batch is prepared
/// (SpeechSet::load).
inline constexpr size_t kUtteranceTarget = 0;  ///< int64: the ids of the text, maybe none
inline constexpr size_t kUtteranceLength =
    1;  ///< int64, one row: hundredths of a second, rounded up

/// Utterances that batches are made of.
struct UtteranceSamples {
  std::vector<int64_t> ids;     ///< [samples]: their numbers in the SpeechSet, ascending
  std::vector<double> seconds;  ///< [samples]: of their sounds
  PackedTokens targets;         ///< [samples] sequences
};

struct UtteranceBatchOptions {
  double batch_seconds = 160;  ///< bound of all sounds of a micro-batch
  int64_t max_samples = 0;     ///< 0 = any number
  /// 0 = none: bound of the rows of a micro-batch where a row is so many seconds of a sound, each
  /// rounded up. It stands beside batch_seconds.
  int64_t max_frames = 0;
  double frame_seconds = 0.01;
  double bucket_seconds =
      0;  ///< lengths are rounded up to multiples; 0 = of a hundredth of a second
  Shuffle shuffle = Shuffle::kNo;
  uint64_t seed = 0;
};

/// Micro-batches of utterances that are about equally long (data/length_batches.h), each a function
/// of (seed, epoch, index). The order of lengths is cut once: a micro-batch has at most
/// batch_seconds and max_samples, or is one sample. With a shuffle, samples of one bucket change
/// places in each epoch, and so do the micro-batches.
///
/// Throws std::invalid_argument without samples, and where the three lists differ in length.
std::unique_ptr<BatchSource> make_utterance_batches(UtteranceSamples samples,
                                                    const UtteranceBatchOptions& options);

}  // namespace stretto::data
