// libFuzzer target: any bytes as manifest.json, once as they are and once with the checksum that
// makes the parser look at what stands before it. Error is the only exception that may come out.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/hash.h"
#include "store/manifest.h"

namespace {

void parse(const std::string& text) {
  try {
    const auto manifest = stretto::store::Manifest::from_json(text, "fuzz");
    // What was accepted survives being written and read again.
    const std::string again = manifest.to_json();
    if (stretto::store::Manifest::from_json(again, "fuzz").to_json() != again) std::abort();
  } catch (const stretto::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  parse(text);
  parse(text + ",\n  \"manifest_sha256\": \"" + stretto::sha256_hex(text) + "\"\n}\n");
  return 0;
}
