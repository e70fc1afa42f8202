#pragma once

#include <torch/nn/module.h>

#include <cstdint>

#include "models/encoder.h"

namespace stretto::models {

/// What stands in front of an encoder that reads no tokens: from rows of frames or pixels to the
/// vectors that the encoder reads in the place of its own (nn::PackedRows::values). Single-device
/// code.
///
/// N rows that go in, M that come out, D their width. A front that strides gives fewer rows, with
/// places, bounds and keys of their own: behind_stride() (models/packed.h). A sequence sees itself
/// alone, as in every part.
///
/// A model registers its front beside the encoder, as `front`. Tokens need none: their table is the
/// encoder's, since its lookup, its factor and the sum with positions are one operator, and since
/// `encoder.embedding.weight` is in every checkpoint.
class Front : public torch::nn::Module {
 public:
  /// Rows with values [N, C], of any type -> rows with values [M, D].
  virtual nn::PackedRows forward(const nn::PackedRows& input, const ForwardContext& context) = 0;
  virtual int64_t width() const = 0;  ///< D
  /// Rows that come out for each that goes in, of a long sequence: 1 / stride.
  virtual double rate() const { return 1; }
  /// Multiplications and additions for one row that goes in; models/operations.h says what counts.
  virtual double operations() const = 0;
};

}  // namespace stretto::models
