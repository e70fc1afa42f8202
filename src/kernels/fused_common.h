#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <string>

#include "kernels/compute.h"
#include "kernels/cpu/table.h"
#include "kernels/kernels.h"

/// What the nodes of fused_*.cpp share: dropout, and the arithmetic of products, between forward
/// and backward.
namespace stretto::kernels::fused {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kRowGrain = 16;

/// Row keys must outlive the call: keep them next to the result.
inline at::Tensor keys_of(const Dropout& dropout) {
  return dropout.active() ? dropout.row_keys.contiguous() : at::Tensor();
}

inline cpu::Drop drop_of(const Dropout& dropout, const at::Tensor& keys) {
  if (!dropout.active()) return {0, nullptr, 0, 1};
  const auto threshold = static_cast<uint32_t>(std::lround(dropout.p * 65536));
  return {dropout.key, keys.const_data_ptr<int64_t>(), threshold,
          65536.0f / static_cast<float>(65536 - threshold)};
}

/// Rows times the factors of their mask, and `residual` (undefined = none) added; no node.
at::Tensor masked_rows(const at::Tensor& x, const at::Tensor& residual, const Dropout& dropout);

/// @param name  of the mask, in a node that has several
inline void keep(AutogradContext* ctx, const Dropout& dropout, const std::string& name = "") {
  ctx->saved_data[name + "p"] = dropout.p;
  ctx->saved_data[name + "key"] = static_cast<int64_t>(dropout.key);
  ctx->saved_data[name + "row_keys"] = dropout.row_keys;
}

inline Dropout kept(AutogradContext* ctx, const std::string& name = "") {
  return {ctx->saved_data[name + "p"].toDouble(),
          static_cast<uint64_t>(ctx->saved_data[name + "key"].toInt()),
          ctx->saved_data[name + "row_keys"].toTensor()};
}

/// Backward may run when the scope has ended, and on another thread.
inline void keep(AutogradContext* ctx, Compute compute) {
  ctx->saved_data["compute"] = static_cast<int64_t>(compute);
}

inline Compute kept_compute(AutogradContext* ctx) {
  return static_cast<Compute>(ctx->saved_data["compute"].toInt());
}

}  // namespace stretto::kernels::fused
