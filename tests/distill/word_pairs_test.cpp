#include "distill/word_pairs.h"

#include <gtest/gtest.h>

#include <map>

#include "base/file.h"
#include "tests/base/temp_dir.h"

namespace stretto::distill {
namespace {

using Words = std::vector<std::string>;

TEST(WordPairs, WordsStandBetweenSpacesAndPunctuationIsItsOwn) {
  EXPECT_EQ(words_of("  (a b),\tdon't  \xc3\xa9t\xc3\xa9!"),
            (Words{"(", "a", "b", ")", ",", "don't", "\xc3\xa9t\xc3\xa9", "!"}));
  EXPECT_EQ(words_of("..."), (Words{".", ".", "."}));
  EXPECT_EQ(words_of("a \xe2\x96\x81"
                     "b c"),
            (Words{"a", "c"}))
      << "a mark of pieces";
  EXPECT_TRUE(words_of("").empty());
  EXPECT_EQ(words_of("Rie@@ sen &apos;s .", /*splits_punctuation=*/false),
            (Words{"Rie@@", "sen", "&apos;s", "."}));
  EXPECT_EQ(words_of("\xe2\x96\x81hou se", /*splits_punctuation=*/false),
            (Words{"\xe2\x96\x81hou", "se"}));
}

class WordPairsTest : public ::testing::Test {
 protected:
  std::vector<experiment::LabelledText> texts(const std::string& source,
                                              const std::string& labels) const {
    return {{.text = folder_.write("a.src", source), .labels = folder_.write("a.labels", labels)}};
  }
  testing::TempDir folder_;
};

// The example of Brown et al. (1993), as Koehn's textbook has it.
TEST_F(WordPairsTest, TheWordThatIsAlwaysThereIsTheLikeliest) {
  const auto pairs = find_word_pairs(
      texts("das Haus\ndas Buch\nein Buch\n", "the house\nthe book\na book\n"), {.rounds = 20});
  std::map<std::string, std::string> best;
  for (const auto& pair : pairs) best.try_emplace(pair.source, pair.label);
  EXPECT_EQ(best["das"], "the");
  EXPECT_EQ(best["Buch"], "book");
  EXPECT_EQ(best["Haus"], "house");
  EXPECT_EQ(best["ein"], "a");
  EXPECT_EQ(best.size(), 4U) << "the empty word is none";
  for (const auto& pair : pairs) {
    EXPECT_GE(pair.probability, 0.001);
    EXPECT_LE(pair.probability, 1.0);
  }
}

TEST_F(WordPairsTest, ALanguageWithoutSpacesHasNone) {
  EXPECT_TRUE(find_word_pairs(texts("a b\n", std::string(60, 'x') + "\n")).empty());
}

TEST_F(WordPairsTest, LeavesOutWordsThatAShortlistRefuses) {
  const std::string text = "x " + std::string(experiment::kMostWordBytes + 1, 'y') + "\nx\n";
  const auto pairs = find_word_pairs(texts(text, "p\np\n"), {});
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs[0].source, "x");
}

TEST_F(WordPairsTest, KeepsTheBestAndWritesThemWithTheirProbabilities) {
  const auto all = texts("x\nx\nx\n", "p q\np r\np\n");
  const auto pairs = find_word_pairs(all, {.best = 1});
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs[0].label, "p");
  write_word_pairs(folder_ / "pairs.tsv", {{"x", "p", 0.5}, {"x", "q", 0.25}});
  EXPECT_EQ(read_file(folder_ / "pairs.tsv"), "x\tp\t0.5\nx\tq\t0.25\n");
}

}  // namespace
}  // namespace stretto::distill
