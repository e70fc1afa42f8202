#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/compute.h"

namespace stretto::optim {

/// A matrix [R, C] with its singular values brought near to 1: U V^T of G = U S V^T, about. Five
/// steps of an iteration of Newton and Schulz's kind, whose polynomial Jordan et al. chose
/// (2024, kellerjordan.github.io/posts/muon) to be steep at zero:
///
///     X = G / |G|      A = X X^T      X = 3.4445 X + (-4.7750 A + 2.0315 A^2) X
///
/// on G^T where R > C. Singular values above about 1e-2 |G| end between 0.7 and 1.2; smaller ones
/// grow by up to 3.4445^5. A matrix of zeros stays as it is.
///
/// Products are computed as `compute` says, all else in fp32. On a CPU the bits do not depend on
/// where the matrix lies, nor on threads where the products' do not (gemm::take_always).
/// @param matrix  [R, C] fp32, contiguous; it stays as it is
at::Tensor orthogonalised(const at::Tensor& matrix, kernels::Compute compute);

}  // namespace stretto::optim
