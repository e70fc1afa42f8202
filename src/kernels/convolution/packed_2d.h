#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/kernels.h"

/// Convolutions over time and columns of packed rows: each row is a line of a plane, such as a
/// frame of frequencies.
///
/// Shape letters: N rows that go in, M rows that come out, W and W' columns, C channels, O output
/// channels.
namespace stretto::kernels {

/// Which lines and columns an output sees. A sequence of T rows gives ceil(T / time_stride); W
/// columns give W' = ceil(W / column_stride). Tap i of output t is row t * time_stride + i - left
/// of its own sequence, left = (taps - 1) / 2 rounded down, and likewise of columns; beyond the
/// ends there are zeroes (PyTorch's padding="same").
struct PackedPlanes {
  Offsets offsets;  ///< of the N rows
  int64_t columns = 1;
  int64_t time_stride = 1;
  int64_t column_stride = 1;

  int64_t columns_out() const { return (columns + column_stride - 1) / column_stride; }
};

/// x [N, W * C], channel c of column w at w * C + c, weight [O, C, taps of time, taps of columns]
/// as PyTorch's Conv2d, bias [O] or undefined -> [M, W' * O] in the same order. fp32 and fp64; half
/// precision as convolution_2d has it. Throws c10::Error for shapes that do not fit.
///
/// By our own loops on a CPU (convolution/windows.h), where a sequence has the same bits in every
/// batch. Elsewhere one call of libtorch's convolution for all sequences, which lie one behind the
/// other with as many rows of zeroes between them as a filter reaches over: nothing is padded to
/// the longest one, and what a sequence gives depends on the others by the rounding of that
/// product.
at::Tensor packed_convolution_2d(const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& bias, const PackedPlanes& planes);

}  // namespace stretto::kernels
