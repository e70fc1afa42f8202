#include "compress/stored_numbers.h"

#include <ATen/ATen.h>

namespace stretto::compress {

std::optional<at::ScalarType> floating_type(store::DType dtype) {
  switch (dtype) {
    case store::DType::kF64:
      return at::kDouble;
    case store::DType::kF32:
      return at::kFloat;
    case store::DType::kF16:
      return at::kHalf;
    case store::DType::kBF16:
      return at::kBFloat16;
    default:
      return std::nullopt;
  }
}

at::Tensor stored_numbers(const store::TensorView& view) {
  const auto type = floating_type(view.dtype);
  TORCH_CHECK(type, "[compress] `", view.name, "` has no floating-point numbers");
  // from_blob() wants a pointer that may be written through; nothing is.
  return at::from_blob(const_cast<char*>(view.bytes.data()), at::IntArrayRef(view.shape),
                       at::dtype(*type));
}

}  // namespace stretto::compress
