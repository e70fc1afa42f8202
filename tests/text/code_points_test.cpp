#include "text/code_points.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stretto::text {
namespace {

TEST(CodePoints, ReadAndWriteUtf8) {
  const std::u32string text = U"aé中😀";
  std::string utf8;
  for (const char32_t c : text) append_utf8(utf8, c);
  EXPECT_EQ(utf8, "aé中😀");
  std::u32string back;
  for (size_t at = 0; at < utf8.size();) back += next_code_point(utf8, at);
  EXPECT_EQ(back, text);
}

TEST(CodePoints, InvalidBytesBecomeReplacementCharacters) {
  const std::string cut = "a\xE4\xB8z";  // the first two bytes of 中
  EXPECT_EQ(repaired_utf8(cut, Repair::kEachByte), "a\uFFFD\uFFFDz");
  EXPECT_EQ(repaired_utf8(cut, Repair::kEachSequence), "a\uFFFDz");
  EXPECT_EQ(repaired_utf8("é", Repair::kEachByte), "é");
}

TEST(CodePoints, AreCountedBeforeEachByte) {
  EXPECT_EQ(code_points_before("a中\xFF"), (std::vector<int64_t>{0, 1, 1, 1, 2, 3}));
  EXPECT_EQ(code_points_before(""), std::vector<int64_t>{0});
}

TEST(CodePoints, CategoriesAreThoseOfUnicode8) {
  EXPECT_TRUE(is_bert_punctuation(U'。'));
  EXPECT_TRUE(is_bert_punctuation(U'$'));  // a symbol of ASCII
  EXPECT_FALSE(is_bert_punctuation(U'€'));
  EXPECT_FALSE(is_bert_punctuation(0x2E52)) << "punctuation since Unicode 13";
  EXPECT_TRUE(is_bert_punctuation(0x166D)) << "a symbol since Unicode 12";
  EXPECT_TRUE(is_nonspacing_mark(0x301));
  EXPECT_FALSE(is_nonspacing_mark(0x1DFA)) << "a mark since Unicode 14";
  EXPECT_TRUE(is_bert_control(0x200D));
  EXPECT_FALSE(is_bert_control(U'\n'));
  EXPECT_FALSE(is_bert_control(0x378)) << "unassigned";
  EXPECT_FALSE(is_bert_control(0x13430)) << "format control since Unicode 12";
}

TEST(CodePoints, ClassesAreThoseOfUnicode16) {
  EXPECT_EQ(class_of(U'é'), CharClass::kLetter);
  EXPECT_EQ(class_of(U'½'), CharClass::kNumber);
  EXPECT_EQ(class_of(0x3000), CharClass::kSpace);
  EXPECT_EQ(class_of(0x301), CharClass::kOther);
  EXPECT_EQ(class_of(0x2EBF0), CharClass::kLetter) << "an ideograph since Unicode 15.1";
  EXPECT_EQ(class_of(0x116D0), CharClass::kNumber) << "a digit since Unicode 16";
  EXPECT_TRUE(is_word_character(0x10D69)) << "a mark since Unicode 16";
  EXPECT_FALSE(is_word_character(U'-'));
}

TEST(CodePoints, LowerCaseNeedsNoContext) {
  EXPECT_EQ(lower(U'Σ'), U'σ');
  EXPECT_EQ(lower(0x130), U'i');
  EXPECT_EQ(lower(0x10D51), char32_t{0x10D71}) << "a letter since Unicode 16";
  EXPECT_EQ(lower(0xA7DC), char32_t{0x19B});
}

TEST(CodePoints, DecomposeToTheEnd) {
  char32_t parts[4];
  ASSERT_EQ(decompose(0x1E69, parts), 3);  // s, dot below, dot above
  EXPECT_EQ(std::u32string(parts, 3), U"s\u0323\u0307");
  ASSERT_EQ(decompose(U'각', parts), 3);
  EXPECT_EQ(std::u32string(parts, 3), U"\u1100\u1161\u11A8");
  EXPECT_EQ(decompose(0x11938, parts), 1) << "decomposes since Unicode 13";
  EXPECT_EQ(combining_class(0x323), 220);
}

}  // namespace
}  // namespace stretto::text
