#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "tests/base/failure.h"
#include "text/tokenizer_spec.h"

namespace stretto::text {
namespace {

constexpr const char* kBertWords = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n##s\n";

TEST(VocabTxt, IsAPieceALine) {
  const TokenizerSpec spec = parse_vocab_txt("\xEF\xBB\xBF[UNK]\r\na \n\nb\na", "vocab.txt");
  EXPECT_EQ(spec.vocab, (PieceIds{{"[UNK]", 0}, {"b", 3}, {"a", 4}}))
      << "spaces at the end are none of the piece; the last of equal lines counts";
}

TEST(VocabTxt, GivesSpecialsTheirMeaning) {
  const TokenizerSpec spec = parse_vocab_txt(kBertWords, "vocab.txt");
  EXPECT_EQ(spec.unk_token, "[UNK]");
  ASSERT_EQ(spec.added.size(), 5U);
  EXPECT_TRUE(spec.added[4].special);
  EXPECT_FALSE(spec.added[4].normalized);
  ASSERT_EQ(spec.sequences.single.size(), 3U);
  EXPECT_EQ(spec.sequences.single[0].id, 2);
  EXPECT_EQ(spec.sequences.single[2].id, 3);
  EXPECT_EQ(parse_vocab_txt("[UNK]\na\n", "vocab.txt").sequences, SequenceTemplate());
}

TEST(VocabTxt, CapitalsShowWhetherTextIsLowered) {
  EXPECT_TRUE(parse_vocab_txt(kBertWords, "v").normalizer->lowercase);
  EXPECT_FALSE(parse_vocab_txt(std::string(kBertWords) + "Paris\n", "v").normalizer->lowercase);
  EXPECT_FALSE(parse_vocab_txt(kBertWords, "v", false).normalizer->lowercase);
  std::string many = kBertWords;
  for (int i = 0; i < 200; ++i) many += "w" + std::to_string(i) + "\n";
  EXPECT_TRUE(parse_vocab_txt(many + "\u1C89\n", "v").normalizer->lowercase)
      << "one capital of a later Unicode";
}

TEST(VocabTxt, NeedsTheUnknownToken) {
  const auto failure =
      testing::failure(ExitCode::kBadData, [] { parse_vocab_txt("a\nb\n", "vocab.txt"); });
  EXPECT_STREQ(failure.what(), "vocab.txt: the vocabulary has no token `[UNK]`");
  const auto bytes =
      testing::failure(ExitCode::kBadData, [] { parse_vocab_txt("[UNK]\n\xFF\n", "vocab.txt"); });
  EXPECT_STREQ(bytes.what(), "vocab.txt:2: this line is not UTF-8 text");
}

TEST(VocabJson, IsReadWithItsMerges) {
  const TokenizerSpec spec = parse_vocab_json(R"({"b": 1, "a": 0, "ab": 2})", "vocab.json",
                                              "#version: 0.2\na b\r\n", "merges.txt");
  EXPECT_EQ(spec.vocab, (PieceIds{{"a", 0}, {"b", 1}, {"ab", 2}}));
  ASSERT_EQ(spec.merges.size(), 1U);
  EXPECT_EQ(spec.merges[0].second, "b");
  EXPECT_TRUE(spec.added.empty());
}

TEST(VocabJson, RefusesWhatIsNoMerge) {
  const auto refusal = [](const std::string& merges) {
    return std::string(testing::failure(ExitCode::kBadData, [&] {
                         parse_vocab_json(R"({"a": 0})", "vocab.json", merges, "merges.txt");
                       }).what());
  };
  EXPECT_EQ(refusal("#version: 0.2\na\n"),
            "merges.txt:2: `a` is not two pieces with a space between them");
  EXPECT_EQ(refusal("a b\n\n"), "merges.txt:2: `` is not two pieces with a space between them");
  EXPECT_STREQ(testing::failure(ExitCode::kBadData,
                                [] { parse_vocab_json("[1]", "vocab.json", "", "merges.txt"); })
                   .what(),
               "vocab.json: expected an object, got array");
}

TEST(VocabFiles, APieceHas64KiBAtMost) {
  const std::string most(65536, 'x'), more(65537, 'x');
  EXPECT_EQ(parse_vocab_txt("[UNK]\n" + most + "\n", "v.txt").vocab.size(), 2U);
  const auto refused = [](const auto& read) {
    const std::string what = stretto::testing::failure(ExitCode::kBadData, read).what();
    EXPECT_NE(what.find("at most 65,536"), std::string::npos) << what;
    return what;
  };
  const auto of_line = refused([&] { parse_vocab_txt("[UNK]\n" + more + "\n", "v.txt"); });
  EXPECT_TRUE(of_line.starts_with("v.txt:2: ")) << of_line;
  refused([&] { parse_vocab_json("{\"" + more + "\": 0}", "v.json", "", "m.txt"); });
  refused([&] { parse_vocab_json("{\"a\": 0}", "v.json", "a " + more, "m.txt"); });
}

TEST(VocabFiles, PiecesAreTakenFromTheAllowanceOfTheFolder) {
  Allowance allowance("a folder");
  parse_vocab_txt("[UNK]\na\nb\na\n", "v.txt", {}, allowance);
  const uint64_t of_three = allowance.taken();
  EXPECT_GT(of_three, 3 * 200U);
  parse_vocab_json(R"({"a": 0, "b": 1, "c": 2})", "v.json", "", "m.txt", false, allowance);
  EXPECT_LT(allowance.taken(), 3 * of_three);  // the JSON was given back
  allowance.take(allowance.limit() - allowance.taken() - 300, "another file");
  const auto error = stretto::testing::failure(
      ExitCode::kBadData, [&] { parse_vocab_txt("[UNK]\na\nb\n", "v.txt", {}, allowance); });
  EXPECT_NE(std::string(error.what()).find("its pieces would take more"), std::string::npos);
}

}  // namespace
}  // namespace stretto::text
