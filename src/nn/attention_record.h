#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace stretto::nn {

/// What a self-attention compares and sums, normed and rotated. N rows, Q the width of queries, E
/// that of keys and of values.
struct AttentionRows {
  at::Tensor queries, keys, values;  ///< [N, Q], [N, E], [N, E]; undefined: none was recorded
  int64_t num_heads = 0, num_kv_heads = 0;
};

/// For as long as it lives, each self-attention that this thread computes leaves its rows here, in
/// the place of those of the one before: in the end those of the last layer. It nests.
class AttentionRecordScope {
 public:
  explicit AttentionRecordScope(AttentionRows& into);
  ~AttentionRecordScope();
  AttentionRecordScope(const AttentionRecordScope&) = delete;
  AttentionRecordScope& operator=(const AttentionRecordScope&) = delete;

  /// Null while nobody records; costs one load of a pointer.
  static AttentionRows* current();

 private:
  AttentionRows* before_;
};

}  // namespace stretto::nn
