#include "distributed/process_group.h"

#include <cstring>
#include <stdexcept>

namespace stretto::distributed {

size_t size_of(Element element) {
  switch (element) {
    case Element::kF32:
      return 4;
    case Element::kF64:
    case Element::kI64:
      return 8;
    case Element::kBf16:
    case Element::kF16:
      return 2;
    case Element::kByte:
      return 1;
  }
  throw std::invalid_argument("[dist] unknown element type");
}

Buffer buffer(std::span<float> values) {
  return {values.data(), static_cast<int64_t>(values.size()), Element::kF32};
}
Buffer buffer(std::span<double> values) {
  return {values.data(), static_cast<int64_t>(values.size()), Element::kF64};
}
Buffer buffer(std::span<int64_t> values) {
  return {values.data(), static_cast<int64_t>(values.size()), Element::kI64};
}

void ProcessGroup::exchange(Buffer send, Buffer receive, std::span<const int64_t> begins) const {
  if (transport_) {
    transport_->exchange(send, receive, begins);
    return;
  }
  if (begins.size() != 2 || receive.count < begins[1] - begins[0]) {
    throw std::invalid_argument("[dist] exchange: begins needs 2 entries and room for its part");
  }
  const size_t width = size_of(send.element);
  const auto* from = static_cast<const char*>(send.data) + static_cast<size_t>(begins[0]) * width;
  const size_t bytes = static_cast<size_t>(begins[1] - begins[0]) * width;
  if (bytes > 0 && from != receive.data) std::memmove(receive.data, from, bytes);
}

}  // namespace stretto::distributed
