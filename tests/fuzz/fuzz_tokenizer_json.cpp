// Fuzz target: tokenizer.json, vocab.txt, and vocab.json with merges.txt; the first byte chooses.
// Whatever loads must also encode and decode, and be written as a tokenizer.json that says the
// same; everything else is an Error.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tests/fuzz/one_reader.h"
#include "text/tokenizer.h"
#include "text/tokenizer_spec.h"

namespace {

using namespace stretto;

void require(bool holds) {
  if (!holds) std::abort();
}

void use(const text::Tokenizer& tokenizer, std::string_view line) {
  std::vector<int64_t> ids, alone;
  std::vector<text::CodePointSpan> spans;
  tokenizer.encode_with_spans(line, ids, spans);
  tokenizer.encode(line, alone);
  require(ids == alone && ids.size() == spans.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    require(ids[i] >= 0 && ids[i] < tokenizer.size());
    require(spans[i].begin >= 0 && spans[i].begin <= spans[i].end);
    require(spans[i].end <= static_cast<int64_t>(line.size()));
    tokenizer.piece(ids[i]);
  }
  tokenizer.decode(ids);
}

text::TokenizerSpec parse(uint8_t kind, const std::string& bytes) {
  switch (kind % 3) {
    case 0:
      return text::parse_tokenizer_json(bytes, "fuzz.json");
    case 1:
      return text::parse_vocab_txt(bytes, "fuzz.txt");
    default: {
      const size_t end = bytes.find('\0');
      const std::string merges = end == std::string::npos ? "" : bytes.substr(end + 1);
      return text::parse_vocab_json(bytes.substr(0, end), "fuzz.json", merges, "merges.txt");
    }
  }
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
    const text::TokenizerSpec spec = parse(data[0], bytes);
    const std::string written = text::write_tokenizer_json(spec);
    const auto tokenizer = text::make_spec_tokenizer(spec, "fuzz", 1);
    require(text::write_tokenizer_json(text::parse_tokenizer_json(written, "again")) == written);
    for (const std::string_view line :
         {std::string_view(
              "the cat's  \xC3\x89t\xC3\xA9 e\xCC\x81 \xE4\xB8\xAD [MASK] \xF0\x9F\x98\x80"),
          std::string_view("\xFF\xC0\x80 a\tb\r"), std::string_view()}) {
      use(*tokenizer, line);
    }
    use(*tokenizer, std::string_view(bytes).substr(0, 1000));
    tokenizer->decode({-1, 0, 1, 2, tokenizer->size() - 1, tokenizer->size()});
  } catch (const Error&) {
  }
  return 0;
}
