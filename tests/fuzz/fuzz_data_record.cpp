// Fuzz target: any bytes as data.json, once as they are, and once with a checksum that fits, so
// that the parser looks at the rest. Every outcome but a record or an error in words is a bug; what
// was accepted survives being written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "data/data_record.h"

namespace {

void parse(const std::string& text, const std::string& owner) {
  using namespace stretto;
  try {
    const std::string again = data::data_record_text(data::parse_data_record(text, "fuzz", owner));
    if (data::data_record_text(data::parse_data_record(again, "again", owner)) != again) {
      std::abort();
    }
  } catch (const Error& error) {
    if (std::string(error.what()).starts_with("again")) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  parse(text, "run");
  try {
    auto json = stretto::parse_json(text, "fuzz", 0);
    if (!json.is_object()) return 0;
    json.erase("checksum");
    json["checksum"] = stretto::hex64(stretto::xxh3_64(json.dump()));
    const auto owner = json.find("owner");
    parse(json.dump(), owner != json.end() && owner->is_string() ? owner->get<std::string>() : "");
  } catch (const stretto::Error&) {
  }
  return 0;
}
