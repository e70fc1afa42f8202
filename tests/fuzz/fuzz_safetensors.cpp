// libFuzzer target: any bytes as a safetensors file. Error is the only exception that may come out.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "store/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    std::map<std::string, std::string> metadata;
    const auto tensors = stretto::store::parse_safetensors(bytes, "fuzz", &metadata);
    // What was accepted lies in the file, side by side, and fits its shape.
    size_t total = 0;
    for (const auto& tensor : tensors) {
      const auto bytes_needed = tensor.num_elements() * stretto::store::size_of(tensor.dtype);
      if (static_cast<size_t>(bytes_needed) != tensor.bytes.size()) std::abort();
      if (!tensor.bytes.empty() &&
          (tensor.bytes.data() < bytes.data() ||
           tensor.bytes.data() + tensor.bytes.size() > bytes.data() + bytes.size())) {
        std::abort();
      }
      total += tensor.bytes.size();
    }
    if (total + stretto::store::safetensors_header_bytes(bytes, "fuzz") != size) std::abort();
  } catch (const stretto::Error&) {
  }
  return 0;
}
