#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/kernels.h"

/// Dropout on planes, [N, C, H, W]: a row of a mask is a sample.
namespace stretto::models {

/// Drops single numbers; element (h W + w) C + c of a sample's row.
at::Tensor drop_planes(const at::Tensor& x, const kernels::Dropout& dropout);

/// Drops whole samples, with one number for each: stochastic depth (Huang et al. 2016,
/// arXiv:1603.09382), where x is what a block adds. x [N, …].
at::Tensor drop_samples(const at::Tensor& x, const kernels::Dropout& dropout);

}  // namespace stretto::models
