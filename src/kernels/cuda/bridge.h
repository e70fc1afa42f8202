#pragma once

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "kernels/cuda/launch.h"
#include "kernels/kernels.h"

/// From tensors to the raw pointers of launch.h: types, rows, the current stream of a tensor's
/// device. For the .cpp files of a CUDA build only.
namespace stretto::kernels::cuda {

inline Type type_of(const at::Tensor& x) {
  if (x.scalar_type() == at::kHalf) return Type::kHalf;
  return x.scalar_type() == at::kBFloat16 ? Type::kBfloat16 : Type::kFloat;
}

/// Calls `launch(stream)` with the device of `x` current, on the stream that ATen uses there, and
/// throws if a kernel could not be launched.
template <class Launch>
void on_stream(const at::Tensor& x, const Launch& launch) {
  const c10::cuda::CUDAGuard guard(x.device());
  launch(at::cuda::getCurrentCUDAStream().stream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

inline Rows rows_of(const at::Tensor& x, cudaStream_t stream) {
  return {x.size(0), x.size(1), type_of(x), stream};
}

/// Attention weights [heads, queries, keys] drop per head; zero heads: plain rows.
struct HeadLayout {
  int64_t heads = 0, queries = 0;
};

/// The dropout rule with keys that are on the device; keys that are undefined drop nothing.
inline Drop drop_of(double p, uint64_t key, const at::Tensor& row_keys, HeadLayout layout = {}) {
  if (!row_keys.defined()) return {0, nullptr, 0, 1, 0, 0};
  const auto threshold = static_cast<uint32_t>(std::lround(p * 65536));
  const float scale = 65536.0f / static_cast<float>(65536 - threshold);
  return {key, row_keys.const_data_ptr<int64_t>(), threshold, scale, layout.heads, layout.queries};
}

/// dropout(x) (+ residual where given) with autograd, rows of x as `layout` says.
at::Tensor drop_rows(const at::Tensor& x, const at::Tensor& residual, const Dropout& dropout,
                     HeadLayout layout = {});

}  // namespace stretto::kernels::cuda
