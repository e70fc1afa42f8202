#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace stretto::tasks {

/// Tokens of a batch of texts that are only read: `asked`, and for 0 what fits the device. So few
/// on a CPU that what lies between two products of a layer stays in a core's cache; so many on a
/// GPU that it is busy.
inline int64_t batch_tokens(int64_t asked, const at::Device& device) {
  constexpr int64_t kOfCpu = 512, kOfGpu = 32768;
  if (asked > 0) return asked;
  return device.is_cpu() ? kOfCpu : kOfGpu;
}

}  // namespace stretto::tasks
