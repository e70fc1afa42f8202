// libFuzzer target: any bytes as a safetensors file with packed tensors. Error is the only
// exception that may come out, and what was accepted is packed again to the same bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "store/quantised_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace store = stretto::store;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    std::map<std::string, std::string> metadata;
    auto tensors = store::parse_safetensors(bytes, "fuzz", &metadata);
    const store::SafetensorsFile file(std::move(tensors), std::move(metadata));
    const store::QuantisedTensors packed(file, "fuzz");
    for (const auto& [name, view] : packed.tensors()) {
      const auto again = store::pack(view.format, view.shape, store::unpack(view));
      if (again.codes != view.codes || again.scales != view.scales || again.zeros != view.zeros) {
        std::abort();
      }
    }
  } catch (const stretto::Error&) {
  }
  return 0;
}
