#pragma once

#include <ATen/core/Tensor.h>

namespace stretto::kernels::gemm {

/// As at::empty, on a CPU in pages of 2 MiB, as far as it fills them and the system has them to
/// give (madvise, MADV_HUGEPAGE). For numbers that are kept and read again and again: with pages of
/// 4 KiB a processor looks up a place in memory for each, and what it fetches ahead ends there.
at::Tensor in_large_pages(at::IntArrayRef sizes, const at::TensorOptions& options);

}  // namespace stretto::kernels::gemm
