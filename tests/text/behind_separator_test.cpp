#include "text/behind_separator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"
#include "text/encoded_text.h"

namespace stretto::text {
namespace {

using Ids = std::vector<int64_t>;

/// Each byte is a token; with a template of its own.
class ByteTokenizer : public Tokenizer {
 public:
  explicit ByteTokenizer(int64_t eos) : eos_(eos) {}
  SpecialIds specials() const override { return {.pad = 0, .bos = 1, .eos = eos_}; }
  SequenceTemplate sequences() const override {
    return {.single = {{.part = SequenceTemplate::Part::kSpecial, .id = 1}, {}}, .pair = {}};
  }
  void encode(std::string_view line, std::vector<int64_t>& ids) const override {
    for (const char c : line) ids.push_back(c);
  }
  std::string decode(const std::vector<int64_t>&) const override { return "decoded"; }
  std::string piece(int64_t) const override { return "piece"; }
  int64_t size() const override { return 256; }
  uint64_t fingerprint() const override { return 7; }

 private:
  int64_t eos_;
};

TEST(BehindSeparator, TextsStandAsALanguageModelReadsThem) {
  const auto tokenizer = behind_separator(std::make_shared<ByteTokenizer>(2));
  const TextEncoder encoder(*tokenizer, {.max_tokens = 6});
  EXPECT_EQ(encoder.encode("ab").ids, (Ids{2, 'a', 'b'}));
  EXPECT_EQ(encoder.encode("").ids, Ids{2}) << "no text is empty";
  const auto pair = encoder.encode("a", "b");
  EXPECT_EQ(pair.ids, (Ids{2, 'a', 2, 'b'}));
  EXPECT_EQ(pair.segments, (Ids{0, 0, 1, 1}));
  EXPECT_EQ(encoder.encode("abcdefgh").ids, (Ids{2, 'a', 'b', 'c', 'd', 'e'}));
}

TEST(BehindSeparator, AllElseIsTheTokenizersOwnButCachesOfItsTokens) {
  const auto inner = std::make_shared<ByteTokenizer>(2);
  const auto tokenizer = behind_separator(inner);
  EXPECT_EQ(tokenizer->specials(), inner->specials());
  EXPECT_EQ(tokenizer->size(), 256);
  EXPECT_EQ(tokenizer->piece(3), "piece");
  EXPECT_EQ(tokenizer->decode({3}), "decoded");
  EXPECT_NE(tokenizer->fingerprint(), inner->fingerprint());
}

TEST(BehindSeparator, ATokenizerWithoutSeparatorIsRefused) {
  const auto error = testing::failure(
      ExitCode::kUsage, [] { behind_separator(std::make_shared<ByteTokenizer>(-1)); });
  EXPECT_NE(std::string(error.what()).find("no separator"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace stretto::text
