#include "kernels/cuda/table.h"

#include "kernels/cuda/cuda.h"

namespace stretto::kernels::cuda {

const Table& table() {
  static constexpr Table kTable{.dropout = cuda::dropout,
                                .dropout_add = cuda::dropout_add,
                                .bias_activation_dropout = cuda::bias_activation_dropout,
                                .swiglu_dropout = cuda::swiglu_dropout,
                                .geglu_dropout = cuda::geglu_dropout,
                                .layer_norm = cuda::layer_norm,
                                .embed = cuda::embed,
                                .self_attention = cuda::self_attention,
                                .cross_attention = cuda::cross_attention,
                                .decode_self_attention = cuda::decode_self_attention,
                                .linear_cross_entropy = cuda::linear_cross_entropy,
                                .column_sums = cuda::column_sums,
                                .sum_of_squares = cuda::sum_of_squares,
                                .sum_of_squares_blocks = cuda::sum_of_squares_blocks};
  return kTable;
}

}  // namespace stretto::kernels::cuda
