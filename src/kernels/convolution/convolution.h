#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/kernels.h"

/// Convolutions in time on packed rows, and what ConvS2S (Gehring et al. 2017, arXiv:1705.03122)
/// and convolutions with shared weights (Wu et al. 2019, arXiv:1901.10430) have besides. Types,
/// devices, errors and threads are as in kernels.h; where no fast kernel exists (fp64, GPUs) they
/// are composed of libtorch's operators.
///
/// Shape letters: N rows that go in, M rows that come out, C channels, O output channels, K taps,
/// H heads.
///
/// In half precision (compute.h) rows and weights are operands of a product like any other: they
/// are rounded, so are the rows that come out and the gradients of both. A softmax of weights, a
/// weight norm and a gate are never rounded.
namespace stretto::kernels {

/// Zeroes beyond the ends of a sequence: on both sides, on the left only, or on the right only.
enum class Border { kCentred, kCausal, kAhead };

/// Which rows an output row sees. A sequence of T rows gives ceil(T / stride); tap i of output t is
/// row t * stride + i * dilation - left of its own sequence, where left = (kernel - 1) * dilation
/// for kCausal, half of that, rounded down, for kCentred (PyTorch's padding="same"), and 0 for
/// kAhead. Where there is no such row, the tap sees zeroes. Nothing is flipped, as in PyTorch.
struct TimeWindow {
  Offsets offsets;  ///< of the N rows
  int64_t kernel = 1;
  Border border = Border::kCentred;
  int64_t dilation = 1;
  int64_t stride = 1;

  int64_t left() const {
    const int64_t reach = (kernel - 1) * dilation;
    if (border == Border::kAhead) return 0;
    return border == Border::kCausal ? reach : reach / 2;
  }
};

/// Offsets of the rows that come out; the same as those that go in when stride is 1.
Offsets output_offsets(const TimeWindow& window);

/// Convolution with products between channels. x [N, C], weight [O, K * C], bias [O] or undefined
/// -> [M, O]. Rows of `weight` are tap-major: weight[o, i * C + c] is weight[o, c, i] of PyTorch's
/// Conv1d, whose [O, C, K] becomes ours by permute(0, 2, 1).reshape(O, K * C).
///
/// Rows are gathered while the product copies its blocks: the [M, K * C] matrix of all windows
/// never exists. Sums run over taps and channels in order, gradients of the weight over rows in
/// order.
at::Tensor time_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                            const TimeWindow& window);

/// One filter for each channel: x [N, C], weight [C, K], bias [C] or undefined -> [M, C].
at::Tensor depthwise_convolution(const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& bias, const TimeWindow& window);

/// LightConv: softmax(weight [H, K]) over K, each head's filter shared by C / H channels next to
/// each other; x [N, C] -> [M, C]. Taps beyond the ends of a sequence keep their share of the
/// softmax (fairseq's modules do the same: their renorm_padding is off).
///
/// `drop_connect` drops normalised weights, for each output row anew (fairseq's module for
/// [T, B, C]; its CUDA one draws once for a batch): row keys of the M rows, element head * K + tap.
at::Tensor light_convolution(const at::Tensor& x, const at::Tensor& weight,
                             const Dropout& drop_connect, const TimeWindow& window);

/// DynamicConv: the same with weights [M, H * K] of its own for each output row, raw numbers that a
/// projection predicted; head-major.
at::Tensor dynamic_convolution(const at::Tensor& x, const at::Tensor& weights, int64_t num_heads,
                               const Dropout& drop_connect, const TimeWindow& window);

/// Gated linear unit (Dauphin et al. 2016, arXiv:1612.08083): dropout(a * sigmoid(b)), (a, b) the
/// halves of x [N, 2 C] + bias [2 C] (may be undefined) -> [N, C].
at::Tensor glu(const at::Tensor& x, const at::Tensor& bias, const Dropout& dropout);

/// Weight normalisation (Salimans & Kingma 2016, arXiv:1602.07868): row o is gain[o] v[o] / |v[o]|.
/// v [O, I], gain [O] -> [O, I]. A row of zeroes has no direction: it becomes NaN.
at::Tensor weight_norm(const at::Tensor& v, const at::Tensor& gain);

/// Sequence i of the queries sees sequence i of the keys.
struct MultiStepAttention {
  Offsets query_offsets;
  Offsets key_offsets;
};

/// Attention of a ConvS2S decoder layer (section 3.3): sqrt(m) * softmax(q K^T) V inside each pair
/// of sequences, m keys; one head, scores are not scaled. The factor is the paper's m * sqrt(1 /
/// m), and is not rounded. q [Nq, D], keys [Nk, D], values [Nk, D] -> [Nq, D].
at::Tensor multi_step_attention(const at::Tensor& q, const at::Tensor& keys,
                                const at::Tensor& values, const MultiStepAttention& options);

/// Its softmax: one [Tq, Tk] block per sequence, flattened and concatenated. No gradient.
at::Tensor multi_step_attention_weights(const at::Tensor& q, const at::Tensor& keys,
                                        const MultiStepAttention& options);

/// x, whose gradient is multiplied by `factor` on its way back. ConvS2S scales the gradients of its
/// encoder by 1 / (2 * decoder layers), since each layer's attention adds one.
at::Tensor scale_gradient(const at::Tensor& x, double factor);

}  // namespace stretto::kernels
