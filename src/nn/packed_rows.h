#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "base/random.h"
#include "kernels/kernels.h"

namespace stretto::nn {

/// One side of a batch as tensors: the N rows of B sequences one after the other, no padding. A row
/// is a token, which has an id, or whatever has values: a frame, a patch, a vector of another part.
struct PackedRows {
  at::Tensor ids;        ///< int64 [N]; undefined where rows have values
  at::Tensor positions;  ///< int64 [N]: place of each row in its sequence, from 0
  at::Tensor row_keys;   ///< int64 [N]: mix64(sample id, position); undefined when not training
  kernels::Offsets offsets;
  /// bool [N]: tokens whose vector is zero in this pass (word dropout); undefined = none.
  at::Tensor dropped_words = {};
  /// int64 [N]: which text of its sequence a token belongs to (BERT's token types); undefined = 0.
  at::Tensor segments = {};
  at::Tensor values = {};  ///< [N, C] in the place of ids; undefined where rows have ids

  int64_t num_rows() const { return positions.size(0); }
};

/// Where the dropout masks of one forward pass come from. Each place in a network that drops has a
/// number of its own (its site), so that no two masks are alike.
struct DropoutSource {
  bool training = false;
  uint64_t key = 0;     ///< mix64(seed, update)
  at::Tensor row_keys;  ///< int64 [N], of the rows that are dropped from

  kernels::Dropout at(double p, uint64_t site) const {
    if (!training || p <= 0) return {};
    return {.p = p, .key = mix64(key, site), .row_keys = row_keys};
  }
};

}  // namespace stretto::nn
