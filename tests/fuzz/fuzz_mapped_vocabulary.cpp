// libFuzzer target: any bytes as the vocab.json that gives a SentencePiece model its ids. Whatever
// loads must also encode and decode; everything else is an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tests/fuzz/small_sentencepiece.h"
#include "text/tokenizer.h"

namespace {

using namespace stretto;

void require_known(const text::Tokenizer& tokenizer, int64_t id) {
  if (id < 0 || id >= tokenizer.size()) std::abort();
}

void use(const text::Tokenizer& tokenizer) {
  for (const std::string_view line : {std::string_view(">>deu<< red house \xC3\xA9"),
                                      std::string_view("\xFF>> <<"), std::string_view()}) {
    std::vector<int64_t> ids, same;
    std::vector<text::CodePointSpan> spans;
    tokenizer.encode(line, ids);
    tokenizer.encode_with_spans(line, same, spans);
    if (ids != same || spans.size() != ids.size()) std::abort();
    for (const int64_t id : ids) require_known(tokenizer, id);
    tokenizer.decode(ids);
  }
  for (const auto& piece : tokenizer.subword_model().pieces) require_known(tokenizer, piece.id);
  tokenizer.decode({-1, 0, tokenizer.size() - 1, tokenizer.size()});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    use(*text::make_mapped_sentencepiece(stretto::testing::small_sentencepiece(), "source.spm",
                                         {bytes, "vocab.json"}));
  } catch (const Error&) {
  }
  return 0;
}
