#pragma once

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include "kernels/compute.h"
#include "kernels/cuda/cuda.h"
#include "kernels/kernels.h"

/// How operators choose a kernel, and what they ask of their arguments before.
namespace stretto::kernels {

/// The fused kernels are fp32 on the CPU, those for GPUs what cuda::takes() says and cuda::Table
/// has; all else goes to the reference.
inline bool is_fused(const at::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == at::kFloat;
}

inline bool is_cuda_float(const at::Tensor& x) {
  return cuda::takes(x) && x.scalar_type() == at::kFloat;
}

/// The kernel of a place of cuda::Table for such tensors; null: the plain form serves.
template <class Kernel, class... Tensors>
Kernel* on_gpu(Kernel* place, const Tensors&... tensors) {
  return place != nullptr && cuda::takes(tensors...) ? place : nullptr;
}

inline bool is_half_type(const at::Tensor& x) {
  return x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16;
}

/// The same for rows x that may be in a half type (Storage::kRounded) beside fp32 numbers.
template <class Kernel>
Kernel* on_gpu_beside_half(Kernel* place, const at::Tensor& x, const at::Tensor& other) {
  const bool mixed = place != nullptr && cuda::takes(x) && is_half_type(x) && is_cuda_float(other);
  return mixed ? place : on_gpu(place, x, other);
}

/// What products of fp32 rows on a GPU are cast to; kFp32: nothing.
inline Compute cuda_compute(const at::Tensor& x) {
  return is_cuda_float(x) ? ComputeScope::current() : Compute::kFp32;
}

inline void check_rows(const at::Tensor& x, const char* name) {
  TORCH_CHECK(x.dim() == 2, "[kernels] ", name, ": need a matrix of rows, got ", x.sizes());
}

/// @param what  is drawn: "dropout", "zoneout of h"
inline void check_probability(const Dropout& dropout, const char* name, const char* what) {
  constexpr double kMost = 1 - 1.0 / 65536;  // masks are drawn in steps of 1 / 65536
  TORCH_CHECK(dropout.p <= kMost, "[kernels] ", name, ": ", what, " must be below 1, got ",
              dropout.p);
}

inline void check_dropout(const Dropout& dropout, int64_t rows, const char* name,
                          const char* what = "dropout") {
  if (!dropout.active()) return;
  check_probability(dropout, name, what);
  TORCH_CHECK(dropout.row_keys.defined() && dropout.row_keys.scalar_type() == at::kLong &&
                  dropout.row_keys.dim() == 1 && dropout.row_keys.size(0) == rows,
              "[kernels] ", name, ": ", what, " needs int64 row_keys of ", rows, " rows");
}

/// Whether a node is needed behind a product. @param bias  may be undefined
inline bool wants_gradient(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::GradMode::is_enabled() &&
         (x.requires_grad() || weight.requires_grad() || (bias.defined() && bias.requires_grad()));
}

/// Indices of rows on the CPU, for which a look past the table would read or write elsewhere: each
/// is in [0, count). @param what  one of them is, as "target"
void check_range(const at::Tensor& indices, int64_t count, const char* name, const char* what);

/// Offsets lead every read of rows on the CPU; on a GPU a look at them would wait for it.
void check_offsets(const Offsets& offsets, int64_t rows, const char* name,
                   const char* what = "offsets");

inline void check_heads(int64_t width, int64_t heads, const char* name) {
  TORCH_CHECK(heads > 0 && width % heads == 0, "[kernels] ", name, ": width ", width,
              " is not a multiple of ", heads, " heads");
}

}  // namespace stretto::kernels
