#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "store/safetensors.h"

namespace stretto::compress {

/// nullopt: integers.
std::optional<at::ScalarType> floating_type(store::DType dtype);
/// The numbers of a tensor in a file, where they lie: they may only be read, while the file is
/// open.
/// @param view  of floating-point numbers
at::Tensor stored_numbers(const store::TensorView& view);

}  // namespace stretto::compress
