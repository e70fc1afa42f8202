#pragma once

#include <ATen/ATen.h>

#include <utility>

#include "nn/conv1d.h"
#include "nn/packed_rows.h"

namespace stretto::models {

/// The bound of a clipped ReLU (Amodei et al. 2015, arXiv:1512.02595, section 3.1).
constexpr double kActivationBound = 20;

/// max(x, 0), or min(max(x, 0), 20) if it clips.
inline at::Tensor rectified(const at::Tensor& x, bool clips) {
  return clips ? x.clamp(0, kActivationBound) : x.relu();
}

/// What a norm ends in whose output is rectified() if it clips, and is rectified already otherwise.
inline kernels::PlaneEnd norm_end(bool clips) {
  return clips ? kernels::PlaneEnd::kNone : kernels::PlaneEnd::kRelu;
}

/// rectified(norm(conv(x)) + residual). @param residual  undefined: nothing is added
inline at::Tensor activated(const at::Tensor& x, const kernels::Offsets& offsets,
                            const nn::Conv1d& conv, const nn::BatchNorm& norm,
                            const at::Tensor& residual, bool clips) {
  const nn::NormEnd end{.end = norm_end(clips), .residual = residual};
  const at::Tensor y = nn::convolved_rows(x, offsets, conv, norm, end);
  return clips ? rectified(y, true) : y;
}

/// The same rows with other values.
inline nn::PackedRows with_values(nn::PackedRows rows, at::Tensor values) {
  rows.values = std::move(values);
  return rows;
}

}  // namespace stretto::models
