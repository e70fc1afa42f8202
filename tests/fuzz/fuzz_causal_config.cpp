// libFuzzer target: any bytes as the config.json of a language model. What is accepted is written,
// and reads back as the same; everything else is an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "families/language_model/folders/causal_class.h"

namespace {

using namespace stretto;

void require(bool holds) {
  if (!holds) std::abort();
}

void read(std::string_view bytes) {
  const auto found = interchange::read_causal_config(bytes, "fuzz");
  require(interchange::causal_incompatibility(*found.its, found.model).empty());
  std::set<std::string> names;
  for (const auto& pair : interchange::causal_names(found)) {
    require(names.insert(pair.ours).second);
  }
  const text::SpecialIds specials{.pad = -1, .bos = 0, .eos = 1};
  const auto text = interchange::write_causal_config(found, specials);
  const auto again = interchange::read_causal_config(text, "again");
  require(again.its == found.its);
  require(interchange::write_causal_config(again, specials) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    read({reinterpret_cast<const char*>(data), size});
  } catch (const Error&) {
  }
  return 0;
}
