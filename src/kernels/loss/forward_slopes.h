#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/compute.h"
#include "kernels/fused_common.h"
#include "kernels/rounding.h"

namespace stretto::kernels::fused {

/// The slopes of a projection's loss, which a node makes in forward: the loss is linear in what
/// comes back.
struct ForwardSlopes {
  /// Slopes of logits lie in [-1, 1]. Times this they stay finite in binary16 and vanish only below
  /// 2^-39, whatever the loss is scaled by.
  static constexpr float kScale = 32768;

  at::Tensor dx, dweight;  ///< [N, D] and [V, D]; under kFp16 times kScale
  at::Tensor dbias;        ///< [V], where there is a bias; never times kScale

  void keep(AutogradContext* ctx) const {
    fused::keep(ctx, ComputeScope::current());
    ctx->saved_data["dx"] = dx;
    ctx->saved_data["dweight"] = dweight;
    ctx->saved_data["biased"] = dbias.defined();
    if (dbias.defined()) ctx->saved_data["dbias"] = dbias;
  }

  /// Those that were kept, times what the loss came back with, and rounded.
  static ForwardSlopes of_backward(AutogradContext* ctx, const at::Tensor& grad) {
    const Compute compute = kept_compute(ctx);
    // The usual factor is one: a mean is taken over the gradients, not over the loss.
    const float scale = grad.item<float>();
    const auto scaled = [&](const char* name) {
      at::Tensor slope = ctx->saved_data[name].toTensor();
      const float factor = compute == Compute::kFp16 ? scale / kScale : scale;
      if (factor != 1.0f) slope = slope * factor;
      return rounded(slope, compute);
    };
    at::Tensor dbias;
    if (ctx->saved_data["biased"].toBool()) dbias = ctx->saved_data["dbias"].toTensor() * scale;
    return {.dx = scaled("dx"), .dweight = scaled("dweight"), .dbias = dbias};
  }
};

}  // namespace stretto::kernels::fused
