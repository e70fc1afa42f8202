#pragma once

#include "kernels/kernels.h"

namespace stretto::kernels {

/// Classes that stand for all others in a softmax's sum.
struct SampledClasses {
  at::Tensor ids;  ///< int64 [S], on the device of x, rising: none twice
  /// [S], where x is and of its type: ln w, if the exponential of a class's logit counts w times
  at::Tensor log_weights;
};

/// Output projection and cross entropy with a sampled normaliser in one. x [N, D], weight [V, D],
/// targets int64 [N] below V, logits l = weight x + bias, bent as linear_cross_entropy bends them.
/// For a row with target t
///
///     loss = -l_t + ln(exp(l_t) + sum over sampled c != t of w_c exp(l_c))
///
/// The negative log-likelihood is the loss itself; neither `token_nll` nor `right_sum` are made. In
/// fp32 on the CPU a block of rows is taken at a time, and no [N, S] logits exist; elsewhere it is
/// plain ATen.
/// @param bias  [V]; undefined = none
/// @param softcap  0 = the logits as they are; else plain ATen serves on the CPU too
/// Throws c10::Error for shapes and types that do not fit and, on the CPU, for ids that do not rise
/// or lie outside of the table.
CrossEntropy sampled_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                   const at::Tensor& targets, const SampledClasses& sampled,
                                   const at::Tensor& bias = {}, double softcap = 0);

namespace fused {

/// The node for fp32 on the CPU without a cap; the arguments are checked, and some of x, weight and
/// bias want a gradient.
CrossEntropy sampled_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                   const at::Tensor& targets, const SampledClasses& sampled,
                                   const at::Tensor& bias);

}  // namespace fused
}  // namespace stretto::kernels
