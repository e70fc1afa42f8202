#pragma once

#include <ATen/core/Tensor.h>

#include "dist/process_group.h"

namespace stretto::train {

/// The memory of a contiguous tensor, for a collective. fp32, fp64, bf16, fp16, int64 and bytes;
/// another type throws c10::Error.
dist::Buffer buffer_of(const at::Tensor& tensor);

}  // namespace stretto::train
