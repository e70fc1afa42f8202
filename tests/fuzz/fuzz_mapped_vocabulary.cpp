// libFuzzer target: any bytes as the vocab.json that gives a SentencePiece model its ids. Whatever
// loads must also encode and decode; everything else is an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/tokenizer.h"

namespace {

using namespace stretto;

/// 16 pieces of "red house", without the usual table of normalisation: loading that takes 50 ms.
/// Bytes of spm_train --model_type=bpe --vocab_size=16 --normalization_rule_name=identity.
const std::string& small_model() {
  static constexpr char kModel[] =
      "\x0a\x0e\x0a\x05\x3c\x75\x6e\x6b\x3e\x15\x00\x00\x00\x00\x18\x02\x0a\x0c\x0a\x03\x3c\x73\x3e"
      "\x15"
      "\x00\x00\x00\x00\x18\x03\x0a\x0d\x0a\x04\x3c\x2f\x73\x3e\x15\x00\x00\x00\x00\x18\x03\x0a\x09"
      "\x0a"
      "\x02\x65\x64\x15\x00\x00\x00\x80\x0a\x09\x0a\x02\x68\x6f\x15\x00\x00\x80\xbf\x0a\x09\x0a\x02"
      "\x73"
      "\x65\x15\x00\x00\x00\xc0\x0a\x0b\x0a\x04\xe2\x96\x81\x72\x15\x00\x00\x40\xc0\x0a\x0a\x0a\x03"
      "\x68"
      "\x6f\x75\x15\x00\x00\x80\xc0\x0a\x08\x0a\x01\x65\x15\x00\x00\xa0\xc0\x0a\x0a\x0a\x03\xe2\x96"
      "\x81"
      "\x15\x00\x00\xc0\xc0\x0a\x08\x0a\x01\x64\x15\x00\x00\xe0\xc0\x0a\x08\x0a\x01\x68\x15\x00\x00"
      "\x00"
      "\xc1\x0a\x08\x0a\x01\x6f\x15\x00\x00\x10\xc1\x0a\x08\x0a\x01\x72\x15\x00\x00\x20\xc1\x0a\x08"
      "\x0a"
      "\x01\x73\x15\x00\x00\x30\xc1\x0a\x08\x0a\x01\x75\x15\x00\x00\x40\xc1\x12\x14\x0a\x05\x74\x2e"
      "\x74"
      "\x78\x74\x12\x01\x6d\x18\x02\x20\x10\x80\x01\x01\x88\x02\x00\x1a\x0c\x0a\x08\x69\x64\x65\x6e"
      "\x74"
      "\x69\x74\x79\x12\x00";
  static const std::string bytes(kModel, sizeof(kModel) - 1);
  return bytes;
}

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
    use(*text::make_mapped_sentencepiece(small_model(), "source.spm", {bytes, "vocab.json"}));
  } catch (const Error&) {
  }
  return 0;
}
