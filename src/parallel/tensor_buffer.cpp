#include "parallel/tensor_buffer.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace stretto::parallel {
namespace {

distributed::Element element_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return distributed::Element::kF32;
    case at::kDouble:
      return distributed::Element::kF64;
    case at::kBFloat16:
      return distributed::Element::kBf16;
    case at::kHalf:
      return distributed::Element::kF16;
    case at::kLong:
      return distributed::Element::kI64;
    case at::kByte:
      return distributed::Element::kByte;
    default:
      TORCH_CHECK(false, "[train] a tensor of type ", type, " cannot be sent to other processes");
  }
}

void* current_stream(const at::Device& device) {
  if (device.is_cpu()) return nullptr;
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
}

}  // namespace

distributed::Buffer buffer_of(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_contiguous(), "[train] only contiguous tensors can be sent");
  return {tensor.data_ptr(), tensor.numel(), element_of(tensor.scalar_type()),
          current_stream(tensor.device())};
}

}  // namespace stretto::parallel
