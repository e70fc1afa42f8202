#pragma once

#include <ATen/core/Tensor.h>

#include "distributed/process_group.h"

namespace stretto::parallel {

/// The memory of a contiguous tensor, for a collective: fp32, fp64, bf16, fp16, int64 and bytes;
/// another type throws c10::Error. On a GPU the collective waits for what the calling thread's
/// current stream has been given so far.
distributed::Buffer buffer_of(const at::Tensor& tensor);

}  // namespace stretto::parallel
