#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "kernels/cuda/table.h"

/// Operators without a kernel on a device: they take their plain form there (reference.h), which
/// gives the same numbers and is slower.
namespace stretto::kernels {

/// The names of all empty places, in the order of the table.
std::vector<std::string> empty_places(const cuda::Table& table);

/// Those of `device`. A CPU has every loop in fp32, and a build without CUDA computes nothing on a
/// GPU: none.
std::vector<std::string> fallbacks(at::Device device);

}  // namespace stretto::kernels
