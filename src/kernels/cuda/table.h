#pragma once

#include "kernels/convolution/convolution.h"
#include "kernels/convolution/steps.h"
#include "kernels/kernels.h"
#include "kernels/recurrent/attentive.h"

/// The kernels for GPUs, a place for each operator. An empty place means that the operator takes
/// its plain form there (`reference.h` of its folder), so that a kernel is added by filling its
/// place. kernels/fallbacks.h names the empty ones.
///
/// Linear layers and the root mean square norm have no place: libtorch has kernels for them. Steps
/// of optimizers have a table of their own (kernels/optimizer/cuda_steps.h), without empty places.
namespace stretto::kernels::cuda {

/// A place has the signature of the operator whose name it has, but for four steps of decoding and
/// a loss.
/// Shapes are already checked, and takes() holds for the tensors (dispatch.h: on_gpu).
struct Table {
  decltype(&kernels::dropout) dropout = nullptr;
  decltype(&kernels::dropout_add) dropout_add = nullptr;
  decltype(&kernels::bias_activation_dropout) bias_activation_dropout = nullptr;
  decltype(&kernels::swiglu_dropout) swiglu_dropout = nullptr;
  decltype(&kernels::geglu_dropout) geglu_dropout = nullptr;
  decltype(&kernels::layer_norm) layer_norm = nullptr;
  decltype(&kernels::embed) embed = nullptr;
  decltype(&kernels::rotary) rotary = nullptr;
  decltype(&kernels::self_attention) self_attention = nullptr;
  decltype(&kernels::cross_attention) cross_attention = nullptr;
  decltype(&kernels::cross_attention_weights) cross_attention_weights = nullptr;
  /// Called where takes_decoding() holds, without a softcap.
  at::Tensor (*decode_self_attention)(const at::Tensor& q, const at::Tensor& k_new,
                                      const at::Tensor& v_new, at::Tensor& k_cache,
                                      at::Tensor& v_cache, const at::Tensor& lineage, int64_t t,
                                      int64_t num_heads, const DistanceBias& bias,
                                      const at::Tensor& first) = nullptr;
  /// Without a softcap.
  CrossEntropy (*linear_cross_entropy)(const at::Tensor& x, const at::Tensor& weight,
                                       const at::Tensor& targets, double smoothing,
                                       int64_t num_classes, const at::Tensor& bias) = nullptr;
  decltype(&kernels::linear_r_drop) linear_r_drop = nullptr;
  /// [N, D] -> fp32 [D].
  at::Tensor (*column_sums)(const at::Tensor& x) = nullptr;
  decltype(&kernels::sum_of_squares) sum_of_squares = nullptr;
  decltype(&kernels::sum_of_squares_blocks) sum_of_squares_blocks = nullptr;

  decltype(&kernels::time_convolution) time_convolution = nullptr;
  decltype(&kernels::depthwise_convolution) depthwise_convolution = nullptr;
  decltype(&kernels::light_convolution) light_convolution = nullptr;
  decltype(&kernels::dynamic_convolution) dynamic_convolution = nullptr;
  decltype(&kernels::time_convolution_step) time_convolution_step = nullptr;
  /// A step of light and dynamic convolutions, once its rows are in the cache: the windows of its
  /// lanes weighed by normalised weights [L or 1, H, K] -> [L, C].
  at::Tensor (*convolution_step)(const RowCache& cache, const at::Tensor& weights) = nullptr;
  decltype(&kernels::glu) glu = nullptr;
  decltype(&kernels::weight_norm) weight_norm = nullptr;
  decltype(&kernels::multi_step_attention) multi_step_attention = nullptr;
  decltype(&kernels::multi_step_attention_weights) multi_step_attention_weights = nullptr;

  decltype(&kernels::recurrent) recurrent = nullptr;
  decltype(&kernels::attentive) attentive = nullptr;
  /// RecurrentStep and AttentiveStep, with the arguments of the two reference::step.
  RecurrentState (*recurrent_step)(const at::Tensor& x_gates, const RecurrentWeights& weights,
                                   const RecurrentState& before,
                                   const CellOptions& options) = nullptr;
  AttentiveState (*attentive_step)(const at::Tensor& x_gates, const AttentiveWeights& weights,
                                   const Memory& memory, const at::Tensor& sources,
                                   const AttentiveState& before, const CellOptions& options,
                                   Score score, at::Tensor* weights_out) = nullptr;
};

/// The table of this build; all places are empty in one without CUDA.
const Table& table();

}  // namespace stretto::kernels::cuda
