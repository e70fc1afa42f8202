#include "train/tensor_buffer.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace stretto::train {
namespace {

dist::Element element_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return dist::Element::kF32;
    case at::kDouble:
      return dist::Element::kF64;
    case at::kBFloat16:
      return dist::Element::kBf16;
    case at::kHalf:
      return dist::Element::kF16;
    case at::kLong:
      return dist::Element::kI64;
    case at::kByte:
      return dist::Element::kByte;
    default:
      TORCH_CHECK(false, "[train] a tensor of type ", type, " cannot be sent to other processes");
  }
}

void* current_stream(const at::Device& device) {
  if (device.is_cpu()) return nullptr;
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
}

}  // namespace

dist::Buffer buffer_of(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_contiguous(), "[train] only contiguous tensors can be sent");
  return {tensor.data_ptr(), tensor.numel(), element_of(tensor.scalar_type()),
          current_stream(tensor.device())};
}

}  // namespace stretto::train
