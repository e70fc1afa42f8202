#pragma once

#include <initializer_list>

#include "kernels/recurrent/attentive.h"

/// Checks of shapes that the entries of recurrent layers share (TORCH_CHECK, a c10::Error).
namespace stretto::kernels::checks {

/// Whether all that are defined are fp32 on the CPU.
bool is_fused(std::initializer_list<at::Tensor> tensors);

/// `name` begins the message. Weights are checked first: the other checks read their sizes.
void weights_of_cell(const RecurrentWeights& weights, const CellOptions& options, const char* name);
void weights_of_attention(const AttentiveWeights& weights, Score score, const char* name);
void rows_of_gates(const at::Tensor& x_gates, const RecurrentWeights& weights,
                   const Recurrent& options, const char* name);
/// Checks that what is overwritten is no leaf.
void overwrites(const at::Tensor& x_gates, const Recurrent& options, const char* name);
/// [rows, width] or undefined.
void state(const at::Tensor& state, int64_t rows, int64_t width, const char* name);
/// The memory of `batch` sequences, as wide as these weights need it.
void memory(const Memory& memory, const AttentiveWeights& weights, int64_t batch, const char* name);

}  // namespace stretto::kernels::checks
