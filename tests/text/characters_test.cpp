#include "text/characters.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/text/special_ids.h"
#include "text/tokenizer.h"

namespace stretto::text {
namespace {

using stretto::testing::kBos;
using stretto::testing::kEos;
using stretto::testing::kUnk;
using Ids = std::vector<int64_t>;

Ids encoded(const Tokenizer& tokenizer, const std::string& text) {
  Ids ids;
  tokenizer.encode(text, ids);
  return ids;
}

TEST(Characters, AreTheIdsOfTheirPlacesBehindTheSpecials) {
  const auto tokenizer = make_characters(R"(["\n", "a", "é", "中"])", "c.json");
  EXPECT_EQ(tokenizer->size(), 8);
  EXPECT_EQ(tokenizer->specials(), stretto::testing::kSpecials);
  EXPECT_EQ(encoded(*tokenizer, "é\na中"), (Ids{6, 4, 5, 7}));
  EXPECT_EQ(tokenizer->decode({kBos, 6, 4, 5, 7, kEos}), "é\na中");
}

TEST(Characters, SpellEveryTextThatHasOnlyThem) {
  const std::string text = " two  spaces,\ttabs\r\n\n and 中é\n";
  const auto tokenizer = make_characters(train_characters({text}, 100), "c");
  EXPECT_EQ(tokenizer->decode(encoded(*tokenizer, text)), text);
}

TEST(Characters, OthersAreUnknownAndBytesThatAreNotUtf8Too) {
  const auto tokenizer = make_characters(R"(["a"])", "c");
  EXPECT_EQ(encoded(*tokenizer, "ab\xFF\xC3"), (Ids{4, kUnk, kUnk, kUnk}));
  EXPECT_EQ(tokenizer->piece(99), "<unk>");
}

TEST(Characters, HavePlacesInCodePoints) {
  const auto tokenizer = make_characters(R"(["a", "é"])", "c");
  Ids ids;
  std::vector<CodePointSpan> spans;
  tokenizer->encode_with_spans("éxa", ids, spans);
  EXPECT_EQ(ids, (Ids{5, kUnk, 4}));
  EXPECT_EQ(spans, (std::vector<CodePointSpan>{{0, 1}, {1, 2}, {2, 3}}));
}

TEST(Characters, AreTrainedInTheOrderOfCodePoints) {
  EXPECT_EQ(train_characters({"ba\n", "é b"}, 100), "[\"\\n\",\" \",\"a\",\"b\",\"é\"]\n");
}

TEST(Characters, TheMostFrequentStayWhereThereAreTooMany) {
  EXPECT_EQ(train_characters({"ccbbbaa"}, 2), "[\"a\",\"b\"]\n") << "of equal ones the first";
  EXPECT_EQ(train_characters({"ccbbbaa"}, 3), "[\"a\",\"b\",\"c\"]\n");
}

TEST(Characters, WithoutTextThereAreNone) {
  testing::failure(ExitCode::kBadData, [] { train_characters({}, 10); });
  testing::failure(ExitCode::kBadData, [] { train_characters({"\xFF"}, 10); });
}

TEST(Characters, ABrokenListIsRefusedWithItsPlace) {
  const auto message = [](const std::string& file) {
    return testing::failure(ExitCode::kBadData, [&] { make_characters(file, "c.json"); }).message();
  };
  EXPECT_NE(message(R"(["a", "bc"])").find("c.json:[1]: expected one character, got `bc`"),
            std::string::npos)
      << message(R"(["a", "bc"])");
  EXPECT_NE(message(R"(["a", ""])").find("expected one character"), std::string::npos);
  EXPECT_NE(message(R"(["a", 5])").find("expected a string"), std::string::npos);
  EXPECT_NE(message(R"(["a", "b", "a"])").find("`a` stands here again"), std::string::npos);
  EXPECT_NE(message("[]").find("there is no character"), std::string::npos);
  EXPECT_NE(message("{}").find("expected a list"), std::string::npos);
  message("[\"a\"");
}

TEST(Characters, OtherFilesAreNone) {
  EXPECT_TRUE(is_character_file(" [\"a\"]"));
  EXPECT_TRUE(is_character_file("[\n]"));
  for (const char* bytes : {"[UNK]\n[CLS]\n", "{\"a\": 1}", "", "[", "\n[\nTthe", "a\n"}) {
    EXPECT_FALSE(is_character_file(bytes)) << bytes;
  }
}

}  // namespace
}  // namespace stretto::text
