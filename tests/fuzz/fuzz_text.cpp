// Fuzz target: the text reader, its decompressors, and the filters of pairs. Bytes may be anything;
// every outcome but lines or an Error is a bug. The first byte chooses the packing and the rules.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/bad_samples.h"
#include "data/lines.h"
#include "data/pairs/pair_filter.h"
#include "tests/data/memory_stream.h"
#include "tests/fuzz/one_reader.h"
#include "text/tokenizer.h"

namespace {

using namespace stretto;

constexpr uint8_t kPackingBits = 3;

std::unique_ptr<data::ByteStream> open(std::string_view bytes, int packing) {
  auto memory = std::make_unique<testing::MemoryStream>(bytes);
  if (packing == 1) return data::make_gunzip(std::move(memory), "fuzz.gz");
  if (packing == 2) return data::make_unzstd(std::move(memory), "fuzz.zst");
  return memory;
}

void require(bool fact) {
  if (!fact) std::abort();
}

/// Behind a line that is refused comes the next one. @param refused  counts them
bool read_on(data::LineReader& reader, std::string_view& line, int64_t& refused) {
  while (true) {
    const int64_t before = reader.line_number();
    try {
      return reader.next(line);
    } catch (const data::SampleError&) {
      require(reader.line_number() == before + 1);
      ++refused;
    }
  }
}

void read_pairs(std::string_view bytes, int packing, const data::PairRules& rules) {
  static const auto vocabulary = text::make_vocabulary("a 9\nb 8\n\xC3\xA9 7\n", "fuzz");
  const text::TokenizerPair tokenizers{.src = vocabulary, .tgt = vocabulary, .joint = true};
  data::LineReader reader(open(bytes, packing), "fuzz");
  data::EncodedPair pair;
  data::FilterCounts counts;
  int64_t lines = 0, refused = 0;
  for (std::string_view line; read_on(reader, line, refused); ++lines) {
    require(line.find('\n') == std::string_view::npos && line.size() <= data::kMaxLineBytes);
    require(reader.line_number() == lines + refused + 1);
    std::string_view src, tgt;
    const auto cut = [&](int64_t column, std::string_view& part) {
      return data::column_of(line, column, '\t', part);
    };
    if (!cut(1, src) || !cut(2, tgt)) tgt = src;
    const data::PairPlace place{.src_name = "fuzz", .tgt_name = "fuzz", .line = lines + 1};
    if (!data::encode_pair(rules, tokenizers, src, tgt, place, pair, counts)) continue;
    require(is_valid_utf8(pair.src_text) && is_valid_utf8(pair.tgt_text));
    require(static_cast<int64_t>(pair.src.size()) <= rules.max_src_tokens);
    require(pair.src.size() > 1 && pair.src.back() == tokenizers.src->specials().eos);
  }
  require(counts.kept + counts.empty + counts.too_long + counts.ratio + counts.invalid_utf8 ==
          lines);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  return stretto::testing::mutate_for_its_reader(data, size, max_size, kPackingBits);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint8_t choice = data[0];
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const stretto::data::PairRules rules{
      .max_src_tokens = 4,
      .max_tgt_tokens = 4,
      .max_ratio = (choice & 4) != 0 ? 1.5 : 0.0,
      .invalid_utf8 = static_cast<stretto::data::InvalidUtf8>((choice >> 3) % 3),
      .too_long = static_cast<stretto::data::TooLong>((choice >> 5) % 3)};
  try {
    read_pairs(bytes, (choice & kPackingBits) % 3, rules);
  } catch (const stretto::Error&) {
  }
  return 0;
}
