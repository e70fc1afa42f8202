#include "text/behind_separator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/text/byte_tokenizer.h"
#include "text/encoded_text.h"

namespace stretto::text {
namespace {

using Ids = std::vector<int64_t>;
using test::ByteTokenizer;

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
