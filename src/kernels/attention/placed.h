#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.h"

/// Attention of decoding steps over rows that lie anywhere in a buffer: a lane that moves rewrites
/// numbers of rows, and nothing is ever copied because others come or go. No gradient.
///
/// Letters: L lanes, S sources, R rows of a buffer, D width of queries, E of keys and of values.
namespace stretto::kernels {

/// [L]: the rows of each lane's steps, from its first to the present one. Lanes may share rows of
/// the past; that of the present step is the lane's own.
using PlacedHistories = std::span<const std::vector<int32_t>>;

/// One step of self-attention: k_new, v_new [L, E] are written to the row of each lane's present
/// step, and q [L, D] attends over its own history -> [L, D], with the bits that
/// decode_self_attention() has for it.
///
/// @param keys, values  [R, E], dense
/// @param bias          not one of queries (c10::Error); as many columns in front of distance 0 as
///                      the longest history has steps in front of the present one
at::Tensor placed_self_attention(const at::Tensor& q, const at::Tensor& k_new,
                                 const at::Tensor& v_new, at::Tensor& keys, at::Tensor& values,
                                 PlacedHistories histories, int64_t num_heads,
                                 const DistanceBias& bias = {}, const AttentionLimits& limits = {});

/// Memories of sources: rows [begins[i], begins[i] + lengths[i]) of a buffer.
struct PlacedMemories {
  std::vector<int64_t> begins, lengths;  ///< [S]
  std::vector<int64_t> lanes;            ///< [S]: lanes of each, which stand together
};

/// q [L, D] over the memory of each lane's source, kv [R, 2 E], dense, rows are (k, v) -> [L, D],
/// with the bits that cross_attention() has for the same rows. In half arithmetic kv holds rounded
/// numbers.
at::Tensor placed_cross_attention(const at::Tensor& q, const at::Tensor& kv,
                                  const PlacedMemories& memories, int64_t num_heads);

}  // namespace stretto::kernels
