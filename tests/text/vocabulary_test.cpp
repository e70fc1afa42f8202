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

std::vector<int64_t> ids_of(const Tokenizer& tokenizer, const std::string& line) {
  std::vector<int64_t> ids;
  tokenizer.encode(line, ids);
  return ids;
}

std::string failure_of(const std::string& file) {
  return testing::failure(ExitCode::kBadData, [&] { make_vocabulary(file, "dict.txt"); }).message();
}

TEST(Vocabulary, ReadsFairseqsDictionary) {
  const auto vocabulary = make_vocabulary("the 120\n, 80\nhou@@ 7\nse 7\n", "dict.txt");
  EXPECT_EQ(vocabulary->size(), 8);
  EXPECT_EQ(ids_of(*vocabulary, "the hou@@ se , dog"), (std::vector<int64_t>{4, 6, 7, 5, kUnk}));
  EXPECT_EQ(vocabulary->decode({kBos, 4, 6, 7, kUnk, kEos}), "the house <unk>");
}

TEST(Vocabulary, TellsItsSpecialIds) {
  EXPECT_EQ(make_vocabulary("</s>\na\n", "v")->specials(), stretto::testing::kSpecials);
}

TEST(Vocabulary, JoinsTheSubwordsThatItsTokensShow) {
  const std::vector<std::pair<Subwords, std::string>> files{
      {Subwords::kBpe, "the\nhou@@\nse\n"},
      {Subwords::kSentencePiece, "▁the\n▁hou\nse\n"},
      {Subwords::kWordPiece, "the\nhou\n##se\n"},
      {Subwords::kNone, "the\nhou\nse\n"}};
  for (const auto& [subwords, file] : files) {
    const auto vocabulary = make_vocabulary(file, "v");
    const bool joined = subwords != Subwords::kNone;
    EXPECT_EQ(vocabulary->subwords(), subwords);
    EXPECT_EQ(vocabulary->decode({4, 5, 6}), joined ? "the house" : "the hou se");
    EXPECT_EQ(vocabulary->readable(vocabulary->piece(5) + " " + vocabulary->piece(6)),
              joined ? "house" : "hou se");
  }
}

TEST(Vocabulary, TheConfigurationKnowsBetterWhatIsJoined) {
  const std::string file = "the\nhou@@\nse\n";
  EXPECT_EQ(make_vocabulary(file, "v", "none")->decode({4, 5, 6}), "the hou@@ se");
  EXPECT_EQ(make_vocabulary("a\n##b\n", "v", "bpe")->decode({4, 5}), "a ##b");
  const auto as_found = make_vocabulary(file, "v"), as_told = make_vocabulary(file, "v", "none");
  EXPECT_EQ(as_found->fingerprint(), as_told->fingerprint()) << "ids are the same";
}

TEST(Vocabulary, ReadsPlainListsScoresAndWindowsLineEnds) {
  const auto vocabulary = make_vocabulary("\xEF\xBB\xBFone\r\ntwo\t-3.5\r\n7\r\n\n8 1", "v");
  EXPECT_EQ(vocabulary->size(), 8);
  EXPECT_EQ(ids_of(*vocabulary, "one two 7 8"), (std::vector<int64_t>{4, 5, 6, 7}));
}

TEST(Vocabulary, RecognisesSpecialsThatTheFileLists) {
  const auto vocabulary = make_vocabulary("<s>\n<pad>\n</s>\n<unk>\nyes\nno\n", "v");
  EXPECT_EQ(vocabulary->size(), 6);
  EXPECT_EQ(ids_of(*vocabulary, "no yes"), (std::vector<int64_t>{5, 4}));
  EXPECT_EQ(ids_of(*vocabulary, "<s> yes </s>"), (std::vector<int64_t>{kUnk, 4, kUnk}));
}

TEST(Vocabulary, OverwritingLinesGetANewIdAsInFairseq) {
  const auto vocabulary =
      make_vocabulary("a 5\nb 4\na 3 #fairseq:overwrite\n<s> 2 #fairseq:overwrite\n", "dict.txt");
  EXPECT_EQ(vocabulary->size(), 8);
  EXPECT_EQ(ids_of(*vocabulary, "a b <s>"), (std::vector<int64_t>{6, 5, 7}));
  EXPECT_EQ(vocabulary->piece(4), "a");
}

TEST(Vocabulary, NamesTheLineOfARepeatedToken) {
  const std::string said = failure_of("a 5\nb 4\na 3\n");
  EXPECT_NE(said.find("dict.txt:3"), std::string::npos) << said;
  EXPECT_NE(said.find("#fairseq:overwrite"), std::string::npos) << said;
}

TEST(Vocabulary, RefusesWhatIsNotAVocabulary) {
  EXPECT_NE(failure_of("").find("no tokens"), std::string::npos);
  EXPECT_NE(failure_of("<s>\n<pad>\n").find("no tokens"), std::string::npos);
  EXPECT_NE(failure_of("good\na whole sentence\n").find("dict.txt:2"), std::string::npos);
  EXPECT_NE(failure_of("good\nb\xFF\xFE"
                       "d\n")
                .find("UTF-8"),
            std::string::npos);
  EXPECT_NE(failure_of(std::string("go\0od\n", 6)).find("UTF-8"), std::string::npos);
}

TEST(Vocabulary, SplitsAtAnyAsciiSpace) {
  const auto vocabulary = make_vocabulary("a\nb\n", "v");
  EXPECT_EQ(ids_of(*vocabulary, "  a\tb  a\r"), (std::vector<int64_t>{4, 5, 4}));
  EXPECT_TRUE(ids_of(*vocabulary, " \t ").empty());
}

TEST(Vocabulary, TellsWhereItsTokensStand) {
  const auto vocabulary = make_vocabulary("thé\nse\n", "v");
  std::vector<int64_t> ids;
  std::vector<CodePointSpan> spans;
  vocabulary->encode_with_spans("  thé \xFF se", ids, spans);
  EXPECT_EQ(ids, (std::vector<int64_t>{4, kUnk, 5}));
  EXPECT_EQ(spans, (std::vector<CodePointSpan>{{2, 5}, {6, 7}, {8, 10}}));
}

}  // namespace
}  // namespace stretto::text
