#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "nn/packed_rows.h"

namespace stretto::models {

/// The sequence of each of `count` rows, int64 [count].
at::Tensor sequence_of_rows(const kernels::Offsets& offsets, int64_t count);

/// The decoder's steps of a batch under teacher forcing: step t of a sentence writes its frames t R
/// to t R + R - 1, and reads its frame t R - 1, zeroes at first. The last step of a sentence may
/// write beyond its end; nobody reads such frames.
///
/// N frames and T steps of all sentences, W numbers of a frame, R frames of a step.
class DecoderSteps {
 public:
  /// @param frames  values [N, W or more], of which the first W numbers are read
  DecoderSteps(const nn::PackedRows& frames, int64_t width, int64_t reduction);

  /// T rows: places in their sentences, offsets, keys of dropout masks (in training), and as values
  /// the frames that they read, [T, W].
  const nn::PackedRows& rows() const { return rows_; }

  /// From what all steps wrote [T, R * C] to one row for each frame [N, C].
  at::Tensor of_frames(const at::Tensor& written) const;

 private:
  int64_t reduction_;
  nn::PackedRows rows_;
  at::Tensor places_;  // int64 [N]: of the frames among T * R; undefined where R is 1
};

}  // namespace stretto::models
