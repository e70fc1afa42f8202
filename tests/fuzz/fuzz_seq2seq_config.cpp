// libFuzzer target: any bytes as the config.json of a translation model. What is accepted is
// written, and reads back as the same; everything else is an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "families/translation/folders/import_seq2seq.h"

namespace {

using namespace stretto;

void require(bool holds) {
  if (!holds) std::abort();
}

void read(std::string_view bytes) {
  const auto found = interchange::read_seq2seq_config(bytes, "fuzz");
  require(interchange::marian_incompatibility(found.model).empty());
  std::set<std::string> names;
  for (const auto& pair : interchange::marian_names(found)) {
    require(names.insert(pair.ours).second);
  }
  const auto text = interchange::write_marian_config(found);
  const auto again = interchange::read_seq2seq_config(text, "again");
  require(interchange::write_marian_config(again) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    read({reinterpret_cast<const char*>(data), size});
  } catch (const Error&) {
  }
  return 0;
}
