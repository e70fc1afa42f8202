// Fuzz target: SentencePiece models, their normalisation tables, vocabulary files, and lists of
// characters; the first byte chooses. Whatever loads must also encode and decode; everything else
// is an Error.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/allowance.h"
#include "base/error.h"
#include "tests/fuzz/one_reader.h"
#include "text/sentencepiece_check.h"
#include "text/tokenizer.h"
#include "text/tokenizer_spec.h"

namespace {

using namespace stretto;

void use(const text::Tokenizer& tokenizer) {
  for (const std::string_view line :
       {std::string_view("the cat  sees \xC3\xA9t\xC3\xA9 \xEF\xAC\x81 \xF0\x9F\x98\x80"),
        std::string_view("\xFF\xC0\x80 a\tb"), std::string_view()}) {
    std::vector<int64_t> ids;
    tokenizer.encode(line, ids);
    for (const int64_t id : ids) {
      if (id < 0 || id >= tokenizer.size()) std::abort();
      tokenizer.piece(id);
    }
    tokenizer.decode(ids);
  }
  tokenizer.decode({-1, 0, 1, 2, 3, 4, tokenizer.size() - 1, tokenizer.size()});
}

/// As a folder of a language model has it.
void use_as_spec(const std::string& bytes) {
  Allowance allowance("fuzz.model");
  const auto spec = text::parse_sentencepiece_bpe(bytes, "fuzz.model", allowance);
  use(*text::make_spec_tokenizer(spec, "fuzz.model", 0));
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  return stretto::testing::mutate_for_its_reader(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 4) {
      case 0:
        use(*text::make_sentencepiece(bytes, "fuzz.model"));
        use_as_spec(bytes);
        break;
      case 1:
        text::check_charsmap(bytes, "fuzz.model");
        break;
      case 3:
        use(*text::make_characters(bytes, "fuzz.chars"));
        break;
      default:
        use(*text::make_vocabulary(bytes, "fuzz.vocab"));
    }
  } catch (const Error&) {
  }
  return 0;
}
