#pragma once

#include <ATen/ops/tensor.h>
#include <c10/core/Device.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/kernels.h"

namespace stretto::kernels {

/// Where sequences of these lengths begin and end, one behind the other.
inline Offsets offsets_of(const std::vector<int64_t>& lengths, c10::Device device = c10::kCPU) {
  std::vector<int32_t> bounds{0};
  int64_t longest = 0;
  for (const int64_t length : lengths) {
    bounds.push_back(bounds.back() + static_cast<int32_t>(length));
    longest = std::max(longest, length);
  }
  return {.values = at::tensor(bounds, at::kInt).to(device), .max_length = longest};
}

}  // namespace stretto::kernels
