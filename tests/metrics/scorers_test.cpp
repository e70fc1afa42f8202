#include "metrics/scorers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/base/failure.h"

namespace stretto::metrics {
namespace {

using Lines = std::vector<std::string>;
using Sets = std::vector<Lines>;

Score score_of(const std::string& metric, const Lines& hypotheses, const Sets& references) {
  return compute({.metric = metric}, hypotheses, references);
}

double detail(const Score& score, const std::string& name) {
  for (const auto& [key, value] : score.details) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no detail " << name;
  return 0;
}

TEST(Bleu, IsTheGeometricMeanOfClippedPrecisions) {
  // 5/6 words ("the" twice is allowed twice), 3/5 pairs, 1/4 triples, 0/3 fours smoothed to
  // 1/(2*3).
  const Score score = score_of("bleu", {"the cat sat on the mat"}, {{"the cat is on the mat"}});
  EXPECT_NEAR(score.score, 100 * std::pow(5.0 / 6 * 3 / 5 * 1 / 4 * 1 / 6, 0.25), 1e-9);
  EXPECT_NEAR(detail(score, "precision_4"), 100.0 / 6, 1e-9);
}

TEST(Bleu, ClipsWordsThatTheReferenceHasLessOften) {
  const Score score = score_of("bleu", {"the the the the the the the"}, {{"the cat on the mat"}});
  EXPECT_NEAR(detail(score, "precision_1"), 200.0 / 7, 1e-9);
}

TEST(Bleu, PunishesShortOutput) {
  const Score score = score_of("bleu", {"a b c d"}, {{"a b c d e f g h"}});
  EXPECT_NEAR(score.score, 100 * std::exp(-1.0), 1e-9);
  EXPECT_NEAR(detail(score, "brevity_penalty"), std::exp(-1.0), 1e-12);
  EXPECT_NEAR(detail(score, "ratio"), 0.5, 1e-12);
}

TEST(Bleu, TakesTheShorterOfTwoEquallyNearReferenceLengths) {
  const Score score = score_of("bleu", {"a b c d e"}, {{"a b c d e f"}, {"a b c d"}});
  EXPECT_EQ(detail(score, "ref_len"), 4);
  EXPECT_NEAR(score.score, 100, 1e-9);
}

TEST(Bleu, AddsStatisticsUpOverSegmentsRatherThanAveragingScores) {
  const Score score = score_of("bleu", {"a b c d e", "x"}, {{"a b c d e", "y"}});
  EXPECT_NEAR(detail(score, "precision_1"), 100.0 * 5 / 6, 1e-9);
  EXPECT_NEAR(score.score, 100 * std::pow(5.0 / 6, 0.25), 1e-9);
}

TEST(Bleu, IsZeroWithoutAMatchWithoutFourWordsAndWithoutText) {
  EXPECT_EQ(score_of("bleu", {"a b c d e"}, {{"v w x y z"}}).score, 0);
  EXPECT_EQ(score_of("bleu", {"a b c"}, {{"a b c"}}).score, 0);
  EXPECT_EQ(score_of("bleu", {""}, {{"a b c d"}}).score, 0);
  EXPECT_EQ(score_of("bleu", {"a b c d"}, {{""}}).score, 0);
  EXPECT_EQ(score_of("bleu", {""}, {{""}}).score, 0);
}

TEST(Bleu, LowerCasesOnRequestBeyondAscii) {
  const Lines hypotheses = {"ÉTÉ À PARIS ΣΟΦΟΣ"};
  const Sets references = {{"été à paris σοφος"}};
  EXPECT_EQ(compute({.metric = "bleu"}, hypotheses, references).score, 0);
  const Score score = compute({.metric = "bleu", .lowercase = true}, hypotheses, references);
  EXPECT_NEAR(score.score, 100, 1e-9);
  EXPECT_EQ(score.signature, "nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:2.6.0");
}

TEST(Bleu, PrintsTheLineOfSacrebleu) {
  EXPECT_EQ(score_of("bleu", {"a b c d"}, {{"a b c d e f g h"}}).text,
            "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = 36.79 "
            "100.0/100.0/100.0/100.0 (BP = 0.368 ratio = 0.500 hyp_len = 4 ref_len = 8)");
}

TEST(Chrf, AveragesPrecisionAndRecallOverTheOrdersThatExist) {
  // Characters 1 of 2, pairs 0 of 1, nothing longer: precision and recall 1/4.
  EXPECT_NEAR(score_of("chrf", {"ab"}, {{"ac"}}).score, 25, 1e-9);
  EXPECT_EQ(score_of("chrf", {"ab"}, {{"cd"}}).score, 0);
  EXPECT_EQ(score_of("chrf", {""}, {{"ab"}}).score, 0);
  EXPECT_EQ(score_of("chrf", {"ab"}, {{""}}).score, 0);
}

TEST(Chrf, DoesNotSeeWhiteSpaceButSeesCodePoints) {
  EXPECT_NEAR(score_of("chrf", {"a b\u3000c"}, {{"abc"}}).score, 100, 1e-9);
  EXPECT_NEAR(score_of("chrf", {"中"}, {{"中"}}).score, 100, 1e-9);
  EXPECT_EQ(score_of("chrf", {"😀"}, {{"😁"}}).score, 0) << "two emoji share bytes, not characters";
}

TEST(Chrf, TakesTheBestReferenceOfEachSegment) {
  const Sets references = {{"ab", "xx"}, {"yy", "cd"}};
  EXPECT_NEAR(score_of("chrf", {"ab", "cd"}, references).score, 100, 1e-9);
}

TEST(ChrfPlusPlus, CountsWordsWithPunctuationParted) {
  // Precisions 2/3, 1/2 (characters), 1/2 (words "hi", ")"); recall 1; F2 = 5 p r / (4 p + r).
  const Score score = score_of("chrf++", {"hi)"}, {{"hi"}});
  const double precision = (2.0 / 3 + 0.5 + 0.5) / 3;
  EXPECT_NEAR(score.score, 100 * 5 * precision / (4 * precision + 1), 1e-9);
  EXPECT_EQ(score.text,
            "chrF2++|nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:2.6.0 = 86.21");
}

TEST(Ter, DividesTheFewestEditsByTheAverageReferenceLength) {
  const Score score = score_of("ter", {"a x"}, {{"a b"}, {"a b c d"}});
  EXPECT_NEAR(score.score, 100.0 / 3, 1e-9);
  EXPECT_EQ(score.signature, "nrefs:2|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:2.6.0");
}

TEST(Ter, HandlesEmptySides) {
  EXPECT_EQ(score_of("ter", {"a b"}, {{""}}).score, 100);
  EXPECT_EQ(score_of("ter", {""}, {{"a b"}}).score, 100);
  EXPECT_EQ(score_of("ter", {""}, {{""}}).score, 0);
}

TEST(Ter, IgnoresCaseUnlessTold) {
  EXPECT_EQ(score_of("ter", {"A B"}, {{"a b"}}).score, 0);
  EXPECT_EQ(
      compute({.metric = "ter", .ter_case_sensitive = true}, Lines{"A B"}, Sets{{"a b"}}).score,
      100);
}

TEST(Scorers, RefuseDifferentCountsAndNothingToScore) {
  for (const auto& name : metric_names()) {
    SCOPED_TRACE(name);
    const Error error = testing::failure(ExitCode::kBadData, [&] {
      score_of(name, {"a", "b"}, {{"a", "b"}, {"a"}});
    });
    EXPECT_NE(std::string(error.what()).find("reference set 2 has 1 segment,"), std::string::npos)
        << error.what();
    EXPECT_THROW(score_of(name, {}, {{}}), Error);
    EXPECT_THROW(score_of(name, {"a"}, {}), Error);
  }
}

TEST(Scorers, SuggestTheNameThatWasMeant) {
  const auto advice_for = [](const ScoreOptions& options) -> std::string {
    try {
      compute(options, Lines{"a"}, Sets{{"a"}});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      return error.advice();
    }
    return "";
  };
  EXPECT_NE(advice_for({.metric = "blue"}).find("did you mean 'bleu'"), std::string::npos);
  EXPECT_NE(advice_for({.metric = "bleu", .tokenize = "12a"}).find("'13a'"), std::string::npos);
}

TEST(Scorers, CountMalformedBytesAsReplacementCharacters) {
  EXPECT_NEAR(score_of("chrf",
                       {"a\xFF"
                        "b"},
                       {{"a\uFFFD"
                         "b"}})
                  .score,
              100, 1e-9);
}

TEST(Scorers, WriteOneLineOfJson) {
  const ScoreOptions options{.metric = "chrf"};
  const std::string line = to_json(compute(options, Lines{"ab"}, Sets{{"ac"}}), options);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["metric"], "chrf");
  EXPECT_EQ(json["score"], 25.0);
  EXPECT_EQ(json["chrf"], 25.0);
  EXPECT_EQ(json["signature"], "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0");
}

}  // namespace
}  // namespace stretto::metrics
