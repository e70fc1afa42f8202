#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/quantised/quantised.h"

/// The rule of quantised.h in plain loops: slow, for tests, and for who wants to read it.
namespace stretto::kernels::reference {

/// x [N, I] fp32 -> int8 [N, I] and fp32 [N], the scale of each row.
struct RoundedRows8 {
  at::Tensor codes, scales;
};
RoundedRows8 rounded_to_8_bits(const at::Tensor& x);

/// x [N, I] times the weights transposed plus bias [O] (may be undefined) -> [N, O]. Sums over
/// groups are added in fp64.
at::Tensor quantised_linear(const at::Tensor& x, const QuantisedWeights& weights,
                            const at::Tensor& bias = {});

/// The weights as fp32 [O, I].
at::Tensor dense(const QuantisedWeights& weights);

}  // namespace stretto::kernels::reference
