#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "metrics/bootstrap.h"
#include "metrics/scorers.h"
#include "metrics/speech_text.h"
#include "tests/base/failure.h"

namespace stretto::metrics {
namespace {

using Lines = std::vector<std::string>;

Score rate(const ScoreOptions& options, const Lines& hypotheses, const Lines& references) {
  return compute(options, hypotheses, std::vector<Lines>{references});
}

double wer(const std::string& hypothesis, const std::string& reference) {
  return rate({.metric = "wer"}, {hypothesis}, {reference}).score;
}

double cer(const std::string& hypothesis, const std::string& reference) {
  return rate({.metric = "cer"}, {hypothesis}, {reference}).score;
}

double standard_wer(const std::string& hypothesis, const std::string& reference) {
  return rate({.metric = "wer", .normalize = "standardize"}, {hypothesis}, {reference}).score;
}

TEST(Wer, DividesErrorsOfAllSegmentsByTheWordsOfAllReferences) {
  const Score score =
      rate({.metric = "wer"}, {"the cat sat", "a", "b c d"}, {"the cat sat down", "b", "b c"});
  EXPECT_NEAR(score.score, 100.0 * 3 / 7, 1e-9);
  const std::map<std::string, double> details(score.details.begin(), score.details.end());
  EXPECT_EQ(details, (std::map<std::string, double>{{"hits", 5},
                                                    {"substitutions", 1},
                                                    {"deletions", 1},
                                                    {"insertions", 1},
                                                    {"ref_length", 7}}));
}

TEST(Wer, MayBeAboveAHundred) {
  EXPECT_NEAR(wer("a b c d", "x"), 400, 1e-9);
}

TEST(Wer, OfSilenceIsTheNumberOfInsertions) {
  EXPECT_EQ(wer("", ""), 0);
  EXPECT_EQ(wer("a b", ""), 200);
  EXPECT_EQ(wer("", "a b"), 100);
}

TEST(Wer, SpacesPartWordsAsJiwerHasIt) {
  EXPECT_EQ(wer("  a   b ", "a b"), 0);
  EXPECT_EQ(wer("a \t b", "a b"), 0) << "two or more of any white space are one space";
  EXPECT_EQ(wer("a\tb", "a b"), 100) << "a tab alone is none";
  EXPECT_EQ(wer("a\u00a0\u00a0b", "a b"), 0);
  EXPECT_EQ(wer("\u3000"
                "a b\t",
                "a b"),
            0);
}

TEST(Wer, HeedsCaseUnlessTold) {
  EXPECT_EQ(wer("The cat", "the cat"), 50);
  EXPECT_EQ(rate({.metric = "wer", .lowercase = true}, {"The CAT"}, {"the cat"}).score, 0);
}

TEST(Wer, StandardizesAsJiwerDoes) {
  EXPECT_EQ(standard_wer("She'll say <unk> you CAN'T [laugh] go", "she will say you can not go"),
            0);
  EXPECT_EQ(standard_wer("won't let's isn't", "will not let us is not"), 0);
  EXPECT_EQ(standard_wer("we're I'd I've I'm it's", "we are i would i have i am it is"), 0);
  EXPECT_EQ(standard_wer("a\tb", "a b"), 0);
  EXPECT_EQ(standard_wer("a <b [c> d", "a d"), 0) << "a mark ends at the next end of any kind";
  EXPECT_EQ(standard_wer("a <b c", "a <b c"), 0) << "a mark without an end stays";
  EXPECT_GT(standard_wer("a <b c", "a"), 0);
}

TEST(Cer, CountsCodePointsAndTheSpacesBetweenThem) {
  EXPECT_NEAR(cer("abd", "abc"), 100.0 / 3, 1e-9);
  EXPECT_NEAR(cer("ab", "a b"), 100.0 / 3, 1e-9);
  EXPECT_EQ(cer(" ab ", "ab"), 0);
  EXPECT_NEAR(cer("日本", "日本語"), 100.0 / 3, 1e-9);
}

TEST(ErrorRates, HaveASignatureThatNamesWhatWasNormalised) {
  EXPECT_EQ(rate({.metric = "wer", .normalize = "standardize"}, {"a b c d"}, {"a b x d"}).text,
            "WER|nrefs:1|case:mixed|norm:standardize|version:jiwer-4.0.0 = 25.00");
  EXPECT_EQ(rate({.metric = "cer", .lowercase = true}, {"a"}, {"a"}).signature,
            "nrefs:1|case:lc|norm:none|version:jiwer-4.0.0");
}

TEST(ErrorRates, CompareWithOneReference) {
  for (const char* metric : {"wer", "cer"}) {
    testing::failure(ExitCode::kUsage, [&] {
      compute({.metric = metric}, Lines{"a"}, std::vector<Lines>{{"a"}, {"b"}});
    });
  }
}

TEST(ErrorRates, AreBetterWhenTheyAreSmaller) {
  Lines good, bad, references;
  for (int i = 0; i < 50; ++i) {
    references.push_back("a b c d");
    good.push_back(i % 5 == 0 ? "a b c" : "a b c d");
    bad.push_back("a b");
  }
  const auto compared =
      paired_bootstrap({.metric = "wer"}, good, bad, std::vector<Lines>{references});
  EXPECT_EQ(compared.win_rate, 1);
  EXPECT_LT(compared.difference.score, 0);
}

TEST(ErrorRates, KnowTheirNormalizationsByName) {
  const Error error = testing::failure(
      ExitCode::kUsage, [] { rate({.metric = "wer", .normalize = "standardise"}, {"a"}, {"a"}); });
  EXPECT_NE(error.advice().find("did you mean 'standardize'"), std::string::npos);
  EXPECT_TRUE(is_error_rate("cer"));
  EXPECT_FALSE(is_error_rate("ter"));
}

TEST(WordsOfTranscript, AreWhatStandsBetweenSpaces) {
  using Pieces = std::vector<std::u32string>;
  EXPECT_EQ(words_of_transcript(U" a  b\u00a0c "), (Pieces{U"a", U"b\u00a0c"}));
  EXPECT_EQ(words_of_transcript(U" \t "), Pieces{});
  EXPECT_EQ(characters_of_transcript(U" a b"), (Pieces{U"a", U" ", U"b"}));
}

TEST(Wer, ContiguousLinesAreOne) {
  const Lines reference{"the cat", "sat  down", "", " here"}, hypothesis{"the cat sat", "down now"};
  const Score words = rate({.metric = "wer", .normalize = "contiguous"}, hypothesis, reference);
  EXPECT_NEAR(words.score, 100.0 / 5, 1e-9);  // here: now
  EXPECT_EQ(words.text, "WER|nrefs:1|case:mixed|norm:contiguous|version:jiwer-4.0.0 = 20.00");
  // Lines are joined by a space: "ab c" and "a bc".
  const Score characters =
      rate({.metric = "cer", .normalize = "contiguous"}, {"a", "bc"}, {"ab", "c"});
  EXPECT_NEAR(characters.score, 100.0 * 2 / 4, 1e-9);
  // A mark that is open at the end of a line does not reach into the next one.
  const Score marks = rate({.metric = "wer", .normalize = "standardize_contiguous"},
                           {"i cannot <a", "b> go"}, {"I CANNOT", "<a b> go"});
  EXPECT_NEAR(marks.score, 100.0 * 2 / 3, 1e-9);
}

}  // namespace
}  // namespace stretto::metrics
