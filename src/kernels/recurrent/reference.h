#pragma once

#include "kernels/recurrent/attentive.h"
#include "kernels/recurrent/recurrent.h"

/// Recurrent layers in plain ATen, one step after the other over the rows that are alive: any dtype
/// and device, differentiable because every step is. They define what the fast form must compute.
namespace stretto::kernels::reference {

RecurrentOutput recurrent(const at::Tensor& x_gates, const RecurrentWeights& weights,
                          const RecurrentState& initial, const Recurrent& options);

AttentiveOutput attentive(const at::Tensor& x_gates, const AttentiveWeights& weights,
                          const Memory& memory, const AttentiveState& initial,
                          const Attentive& options);

/// One step of decoding: a row for each lane, zoneout at its mean.
RecurrentState step(const at::Tensor& x_gates, const RecurrentWeights& weights,
                    const RecurrentState& before, const CellOptions& options);

/// The same with attention; lane l sees source sources[l] (int64 [L]) of the memory. `weights_out`
/// [L, longest memory] unless null.
AttentiveState step(const at::Tensor& x_gates, const AttentiveWeights& weights,
                    const Memory& memory, const at::Tensor& sources, const AttentiveState& before,
                    const CellOptions& options, Score score, at::Tensor* weights_out);

}  // namespace stretto::kernels::reference
