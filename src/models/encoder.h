#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <vector>

#include "nn/embedding.h"
#include "nn/packed_rows.h"

namespace stretto::models {

/// What a forward pass needs to know beside its input.
struct ForwardContext {
  bool training = false;
  uint64_t dropout_key = 0;  ///< mix64(seed, update); used when training

  /// Masks for rows with these keys.
  nn::DropoutSource dropout(const at::Tensor& row_keys) const {
    return {.training = training, .key = dropout_key, .row_keys = row_keys};
  }
};

/// What an encoder made of a batch, and all that a decoder sees of it.
///
/// N rows of all sequences, D the encoder's width. Rows may be fewer than the input's, where an
/// encoder strides: `rows` has their offsets and keys, and need not have ids.
struct Encoded {
  nn::PackedRows rows;
  at::Tensor keys;    ///< [N, D]: what attention compares with
  at::Tensor values;  ///< [N, D]: what attention sums; undefined = keys (ConvS2S: z and z + e)
  /// Last states of a recurrent encoder, h and c of each layer, bottom first, each [B, width of the
  /// layer]; of a GRU h alone; else empty.
  std::vector<at::Tensor> state;

  const at::Tensor& attended() const { return values.defined() ? values : keys; }
};

/// From packed rows of input to rows that a decoder or a head reads. Single-device code.
///
/// Rows have ids, which the encoder's table turns into vectors; or they have these vectors already,
/// in nn::PackedRows::values, of the width that the encoder is built with: from a front (models/
/// front.h) or another part. Positions are the encoder's in both cases, and so is the dropout of
/// the sum. An encoder that is built without rows of a table (PartSetup::rows) reads values alone.
class Encoder : public torch::nn::Module {
 public:
  virtual Encoded forward(const nn::PackedRows& input, const ForwardContext& context) = 0;
  virtual int64_t width() const = 0;  ///< D
  /// Multiplications and additions of forward for one row of its input, in sequences of `length`
  /// rows; models/operations.h says what counts.
  virtual double operations(double length) const = 0;
  /// The table that turns input ids into rows, for others to share; null when there is none.
  virtual nn::Embedding embedding() const { return nullptr; }
};

}  // namespace stretto::models
