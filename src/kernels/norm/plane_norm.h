#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/norm/plane_table.h"

/// Batch normalisation of planes with what stands behind it, as one operator. Types, devices,
/// errors and threads are as in kernels.h.
namespace stretto::kernels {

struct PlaneNormOptions {
  double epsilon = 1e-5;
  PlaneEnd end = PlaneEnd::kNone;
  at::Tensor residual = {};  ///< like x, added in front of `end`; undefined: nothing is added
};

/// The moments of a batch, [C], without gradient; the variance is unbiased, n / (n - 1) times the
/// one that x is divided by the root of.
struct PlaneMoments {
  at::Tensor mean, var;
};

/// end((x - mean) / sqrt(var + epsilon) * weight + bias + residual), mean and biased variance those
/// of each channel over the batch; x [N, C, H, W] in channels-last memory (else it is copied),
/// weight and bias [C] -> like x. Moments are stored to `moments`.
///
/// On a CPU a forward pass reads x twice, the second time to write y, and moments are summed over
/// blocks of rows that x alone decides on. A backward pass works slopes of relu out again instead
/// of storing them.
at::Tensor plane_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      const PlaneNormOptions& options, PlaneMoments& moments);

/// end(z) of numbers that are normed already; may overwrite z, which nothing else needs.
at::Tensor bent_plane(at::Tensor z, PlaneEnd end);

}  // namespace stretto::kernels
