// libFuzzer target: any bytes as the config.json of a model. What is accepted is written, and reads
// back as the same; everything else is an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "families/text/folders/model_config.h"

namespace {

using namespace stretto;

void require(bool holds) {
  if (!holds) std::abort();
}

void read(std::string_view bytes, bool encoder_only) {
  const auto found = interchange::read_model_config(bytes, "fuzz", encoder_only);
  std::set<std::string> names;
  for (const auto& pair :
       interchange::names_of(*found.architecture, found.description, encoder_only)) {
    for (const auto& name : pair.theirs) require(names.insert(name).second);
  }
  if (!found.architecture->incompatibility(found.description).empty()) return;
  const auto text = interchange::write_model_config(*found.architecture, found.description);
  const auto again = interchange::read_model_config(text, "again", false);
  require(interchange::write_model_config(*again.architecture, again.description) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const bool encoder_only : {false, true}) {
    try {
      read(bytes, encoder_only);
    } catch (const Error&) {
    }
  }
  return 0;
}
