#include "families/speech_recognition/transcript_errors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace stretto::tasks {
namespace {

TEST(TranscriptErrors, AreThoseOfWordsAndOfCharacters) {
  const auto errors = transcript_errors("one two three", "one too three four", "none");
  EXPECT_EQ(errors.words.substitutions, 1);
  EXPECT_EQ(errors.words.insertions, 1);
  EXPECT_EQ(errors.words.hits, 2);
  EXPECT_NEAR(error_rate(errors.words), 100 * 2.0 / 3, 1e-9);
  EXPECT_EQ(errors.characters.errors(), 6);
}

TEST(TranscriptErrors, GoByTheNormalisationOfJiwer) {
  EXPECT_EQ(transcript_errors("It can't be", "it can not be", "none").words.errors(), 3);
  EXPECT_EQ(transcript_errors("It can't be", "it can not be", "standardize").words.errors(), 0);
}

TEST(TranscriptErrors, OfNoWordsAreTheInsertions) {
  EXPECT_EQ(error_rate(transcript_errors("", "", "none").words), 0);
  EXPECT_EQ(error_rate(transcript_errors("", "two words", "none").words), 200);
}

TEST(TranscriptErrors, TheTableHasALineForEachUtterance) {
  const std::vector<UtteranceResult> results{
      {.id = "a", .place = "", .seconds = 1.5, .reference = "x y", .hypothesis = "x z", .loss = 2},
      {.id = "b\tc",
       .place = "",
       .seconds = 0.25,
       .reference = "y",
       .hypothesis = "",
       .loss = 0,
       .is_read = false},
      {.id = "d",
       .place = "",
       .seconds = 0.5,
       .reference = "z",
       .hypothesis = "z",
       .loss = std::nan("")}};
  EXPECT_EQ(
      utterance_table(results, "none"),
      "id\tseconds\twords\tsubstitutions\tdeletions\tinsertions\tloss\treference\thypothesis\n"
      "a\t1.500\t2\t1\t0\t0\t2.000000\tx y\tx z\n"
      "b c\t0.250\t-\t-\t-\t-\t-\ty\t\n"
      "d\t0.500\t1\t0\t0\t0\t-\tz\tz\n");
}

TEST(Confusions, CountPairsOfWordsMostFrequentFirst) {
  Confusions confusions("none");
  confusions.add("fünf eins", "fünf zwei");
  confusions.add("eins drei", "zwei");
  confusions.add("eins", "eins vier");
  EXPECT_EQ(confusions.text(),
            "2\teins\tzwei\n"
            "1\t-\tvier\n"
            "1\tdrei\t-\n");
}

}  // namespace
}  // namespace stretto::tasks
