#include "text/bert_normalizer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stretto::text {
namespace {

NormalizedText normalized(const std::string& line, const BertNormalizerOptions& options = {}) {
  NormalizedText out;
  BertNormalizer(options).normalize(line, true, out);
  EXPECT_EQ(out.origin.size(), out.text.size());
  return out;
}

TEST(BertNormalizer, RemovesControlsAndLevelsWhiteSpace) {
  EXPECT_EQ(normalized("a\x01\u200D\uFFFDb\tc\u3000d").text, "ab c d");
}

TEST(BertNormalizer, StripsAccentsInLowerCase) {
  EXPECT_EQ(normalized("ÉTÉ Ångström İ").text, "ete angstrom i");
  EXPECT_EQ(normalized("É", {.strip_accents = false}).text, "é");
  EXPECT_EQ(normalized("É", {.lowercase = false}).text, "É");
  EXPECT_EQ(normalized("É", {.strip_accents = true, .lowercase = false}).text, "E");
  EXPECT_EQ(normalized("İ", {.strip_accents = false}).text, "i\u0307");
}

TEST(BertNormalizer, PutsSpacesAroundIdeographs) {
  EXPECT_EQ(normalized("a中文b").text, "a 中  文 b");
  EXPECT_EQ(normalized("カ").text, "カ") << "kana are no ideographs";
  EXPECT_EQ(normalized("中", {.handle_chinese_chars = false}).text, "中");
}

TEST(BertNormalizer, TellsWhereEachByteComesFrom) {
  // É is two bytes and becomes one, the control is dropped, 中 becomes three characters.
  const auto out = normalized("É\x01x中");
  EXPECT_EQ(out.text, "ex 中 ");
  EXPECT_EQ(out.origin, (std::vector<uint32_t>{0, 3, 4, 4, 4, 4, 4}));
}

TEST(BertNormalizer, HangulBecomesJamoOfOnePlace) {
  const auto out = normalized("한");
  EXPECT_EQ(out.text, "\u1112\u1161\u11AB");
  EXPECT_EQ(out.origin, std::vector<uint32_t>(9, 0));
}

TEST(BertNormalizer, MarksTakeThePlacesOfCanonicalOrder) {
  // U+1D165 (class 216) goes before U+0301 (230), which is stripped.
  const auto out = normalized("a\u0301\U0001D165b");
  EXPECT_EQ(out.text, "a\U0001D165b");
  EXPECT_EQ(out.origin, (std::vector<uint32_t>{0, 1, 1, 1, 1, 7})) << "the mark's first place";
}

TEST(BertNormalizer, NeedsNoOrigin) {
  NormalizedText out{.text = "old", .origin = {1}};
  BertNormalizer({}).normalize("Été", false, out);
  EXPECT_EQ(out.text, "ete");
  EXPECT_TRUE(out.origin.empty());
}

}  // namespace
}  // namespace stretto::text
