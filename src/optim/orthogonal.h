#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/compute.h"

namespace stretto::optim {

/// A matrix [R, C] with its singular values brought near to 1: U V^T of G = U S V^T, about. Steps
/// of an iteration of Newton and Schulz's kind, whose polynomial Jordan et al. chose (2024,
/// kellerjordan.github.io/posts/muon) to be steep at zero:
///
///     X = G / |G|      A = X X^T      X = 3.4445 X + (-4.7750 A + 2.0315 A^2) X
///
/// on G^T where R > C. After five steps, singular values above about 1e-2 |G| are between 0.7 and
/// 1.2, and smaller ones have grown by up to 3.4445^5. A matrix of zeros stays as it is.
///
/// Products are computed as `compute` says, all else in fp32. On a CPU the bits do not depend on
/// where the matrix lies, nor on threads where the products' do not (gemm::take_always).
/// @param matrix  [R, C] fp32, contiguous; it stays as it is
at::Tensor orthogonalised(const at::Tensor& matrix, kernels::Compute compute,
                          int64_t iterations = 5);

/// Multiplies `values` by what brings `whole` to this Euclidean norm. Values of which all are zero
/// stay so.
/// @param whole  fp32, contiguous; `values` may be a part of it
void scale_by_norm(at::Tensor values, const at::Tensor& whole, double norm);

}  // namespace stretto::optim
