#pragma once

#include "kernels/recurrent/attentive.h"
#include "kernels/recurrent/recurrent.h"

/// Autograd nodes of recurrent layers for fp32 tensors on the CPU, shapes already checked.
namespace stretto::kernels::fused {

RecurrentOutput recurrent(const at::Tensor& x_gates, const RecurrentWeights& weights,
                          const RecurrentState& initial, const Recurrent& options);

AttentiveOutput attentive(const at::Tensor& x_gates, const AttentiveWeights& weights,
                          const Memory& memory, const AttentiveState& initial,
                          const Attentive& options);

}  // namespace stretto::kernels::fused
