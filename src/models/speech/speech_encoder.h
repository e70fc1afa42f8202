#pragma once

#include <cstdint>
#include <memory>

#include "models/encoder.h"
#include "models/speech/speech_stream.h"
#include "nn/init.h"

namespace stretto::models {

/// What an encoder of speech is built from beside its options.
struct SpeechPart {
  nn::Init init;             ///< already at the encoder's name, "encoder"
  int64_t num_features = 0;  ///< F, width of a frame
};

/// From frames to rows that a head or a decoder reads: frames are packed rows with values [N, F]
/// (nn::PackedRows), rows are Encoded::keys [M, D] with offsets and keys of their own. An utterance
/// sees itself alone, and nothing is padded; norms are over real frames.
///
/// `operations(length)` is for one frame of utterances of `length` frames.
class SpeechEncoder : public Encoder {
 public:
  /// Rows of an utterance of so many frames: output_length() of the options.
  virtual int64_t output_length(int64_t frames) const = 0;
  /// Begins an utterance in pieces, frames to rows; in evaluation. Null for an encoder that cannot:
  /// stream_problem() of the options says why.
  virtual std::unique_ptr<RowStream> stream() { return nullptr; }
  /// Filters of the first layer as planes [O, 1, time, F] for a report.
  virtual at::Tensor first_filters() const = 0;
};

}  // namespace stretto::models
