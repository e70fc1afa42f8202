#include "text/subword_sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/base/failure.h"
#include "tests/text/special_ids.h"

namespace stretto::text {
namespace {

using stretto::testing::kUnk;

using Ids = std::vector<int64_t>;

const std::vector<std::string> kLines{
    "the small house stands near the river",  "a smaller house and the smallest houses",
    "standing near the rivers of the land",   "she stands and he understands the landing",
    "houses near houses, rivers near rivers", "the river house is the smallest of houses"};

std::shared_ptr<const Tokenizer> trained_tokenizer(const std::string& algorithm) {
  std::vector<std::string> lines;
  for (int copy = 0; copy < 20; ++copy) lines.insert(lines.end(), kLines.begin(), kLines.end());
  const int64_t size = algorithm == "unigram" ? 36 : 70;  // what so little text allows
  return make_sentencepiece(
      train_sentencepiece(lines, {.algorithm = algorithm, .vocab_size = size}), "m");
}

Ids encoded(const Tokenizer& tokenizer, const std::string& line) {
  Ids ids;
  tokenizer.encode(line, ids);
  return ids;
}

TEST(SubwordSampling, SpellsTheSameTextInMoreThanOneWay) {
  for (const std::string algorithm : {"bpe", "unigram"}) {
    SCOPED_TRACE(algorithm);
    const auto tokenizer = trained_tokenizer(algorithm);
    const SubwordSampler sampler(tokenizer->subword_model(), 0.3);
    for (const auto& line : kLines) {
      const Ids own = encoded(*tokenizer, line);
      std::set<Ids> found;
      for (uint64_t key = 0; key < 50; ++key) {
        const Ids drawn = sampler.sample(own, key);
        EXPECT_EQ(tokenizer->decode(drawn), line);
        EXPECT_EQ(drawn, sampler.sample(own, key)) << "a function of the key";
        found.insert(drawn);
      }
      EXPECT_GT(found.size(), 5u);
    }
  }
}

// Both from a model of our own and from what it cut: what is drawn does not depend on that.
TEST(SubwordSampling, DependsOnTheTextAloneAndNotOnItsSegmentation) {
  for (const std::string algorithm : {"bpe", "unigram"}) {
    const auto tokenizer = trained_tokenizer(algorithm);
    const SubwordSampler sampler(tokenizer->subword_model(), 0.3);
    const Ids own = encoded(*tokenizer, kLines[3]), other = sampler.sample(own, 99);
    ASSERT_NE(own, other);
    EXPECT_EQ(sampler.sample(own, 5), sampler.sample(other, 5));
  }
}

TEST(SubwordSampling, OfBpeThatLeavesOutNoMergeIsSentencePiecesOwn) {
  const auto tokenizer = trained_tokenizer("bpe");
  const SubwordSampler sampler(tokenizer->subword_model(), 1e-12);
  for (const auto& line : kLines) {
    EXPECT_EQ(sampler.sample(encoded(*tokenizer, line), 1), encoded(*tokenizer, line)) << line;
  }
}

TEST(SubwordSampling, OfBpeThatLeavesOutAllMergesIsCharacters) {
  const auto tokenizer = trained_tokenizer("bpe");
  const SubwordSampler sampler(tokenizer->subword_model(), 1);
  const Ids drawn = sampler.sample(encoded(*tokenizer, "the land"), 1);
  EXPECT_EQ(drawn.size(), 9u) << "eight characters and the mark of the first word";
}

// A piece of two characters is merged with probability 1 - p, and 1 - p^2 where two of three
// characters may be.
TEST(SubwordSampling, OfBpeLeavesOutMergesWithTheStatedProbability) {
  const SubwordModel model{.kind = SubwordModel::Kind::kBpe,
                           .pieces = {{"a", -10, 4}, {"b", -11, 5}, {"ab", 0, 6}, {"ba", -1, 7}}};
  const SubwordSampler sampler(model, 0.3);
  constexpr int kDraws = 20000;
  int whole = 0, first = 0, second = 0;
  for (uint64_t key = 0; key < kDraws; ++key) {
    whole += sampler.sample(Ids{6}, key) == Ids{6};
    const Ids three = sampler.sample(Ids{6, 4}, key);
    first += three == Ids{6, 4};
    second += three == Ids{4, 7};
  }
  EXPECT_NEAR(double(whole) / kDraws, 0.7, 0.015);
  EXPECT_NEAR(double(first) / kDraws, 0.7, 0.015) << "the better merge wherever it is there";
  EXPECT_NEAR(double(second) / kDraws, 0.3 * 0.7, 0.015);
}

// "abc" is a b c, ab c, a bc or abc: each with its probability to the power of alpha.
TEST(SubwordSampling, OfUnigramDrawsEachSegmentationWithItsShare) {
  const SubwordModel model{.kind = SubwordModel::Kind::kUnigram,
                           .pieces = {{"a", -1, 4},
                                      {"b", -2, 5},
                                      {"c", -1.5, 6},
                                      {"ab", -2, 7},
                                      {"bc", -2.5, 8},
                                      {"abc", -4, 9}}};
  for (const double alpha : {0.2, 1.0}) {
    std::map<Ids, double> shares{{{4, 5, 6}, -4.5}, {{7, 6}, -3.5}, {{4, 8}, -3.5}, {{9}, -4}};
    double sum = 0;
    for (auto& [ids, score] : shares) {
      score = std::exp(alpha * score);
      sum += score;
    }
    const SubwordSampler sampler(model, alpha);
    constexpr int kDraws = 20000;
    std::map<Ids, int> counts;
    for (uint64_t key = 0; key < kDraws; ++key) ++counts[sampler.sample(Ids{9}, key)];
    EXPECT_EQ(counts.size(), shares.size());
    for (const auto& [ids, share] : shares) {
      EXPECT_NEAR(double(counts[ids]) / kDraws, share / sum, 0.015) << alpha << ' ' << ids.size();
    }
  }
}

TEST(SubwordSampling, OtherIdsStayWhereTheyAreAndNoneBecomesUnknown) {
  // Without a piece "b", so that "ab" cannot come apart.
  const std::vector<SubwordModel::Piece> pieces{{"a", -3, 4}, {"ab", -1, 6}, {"aa", -2, 7}};
  for (const auto kind : {SubwordModel::Kind::kBpe, SubwordModel::Kind::kUnigram}) {
    const SubwordSampler sampler({.kind = kind, .pieces = pieces}, 1);
    for (uint64_t key = 0; key < 100; ++key) {
      const Ids drawn = sampler.sample(Ids{kUnk, 6, 99, kUnk}, key);
      EXPECT_EQ(drawn, (Ids{kUnk, 6, 99, kUnk}));
    }
    EXPECT_EQ(sampler.sample(Ids{}, 1), Ids{});
  }
}

TEST(SubwordSampling, PiecesAcrossWordsAreDrawnTooWhereTheModelHasThem) {
  const std::string mark = "\xE2\x96\x81";
  const SubwordModel model{
      .kind = SubwordModel::Kind::kUnigram,
      .pieces = {{mark + "a", -1, 4}, {mark + "b", -1, 5}, {mark + "a" + mark + "b", -2, 6}}};
  const SubwordSampler sampler(model, 1);
  std::set<Ids> found;
  for (uint64_t key = 0; key < 50; ++key) found.insert(sampler.sample(Ids{4, 5}, key));
  EXPECT_EQ(found, (std::set<Ids>{{4, 5}, {6}}));
}

TEST(SubwordSampling, IsOffAtZeroAndRefusedWithoutASubWordModel) {
  const auto words = make_vocabulary("one\ntwo\n", "v");
  EXPECT_EQ(make_sampler(*words, 0, "data.src_subword_sampling"), nullptr);
  EXPECT_NE(make_sampler(*trained_tokenizer("bpe"), 0.1, "data.src_subword_sampling"), nullptr);
  const Error error = testing::failure(
      ExitCode::kUsage, [&] { make_sampler(*words, 0.1, "data.src_subword_sampling"); });
  EXPECT_NE(error.message().find("data.src_subword_sampling"), std::string::npos);
  EXPECT_FALSE(error.advice().empty());
}

TEST(SubwordSampling, ReadsWhatKindAModelIsAndItsOrdinaryPieces) {
  for (const auto& [algorithm, kind] : {std::pair{"bpe", SubwordModel::Kind::kBpe},
                                        std::pair{"unigram", SubwordModel::Kind::kUnigram}}) {
    const auto tokenizer = trained_tokenizer(algorithm);
    const SubwordModel model = tokenizer->subword_model();
    EXPECT_EQ(model.kind, kind);
    ASSERT_EQ(static_cast<int64_t>(model.pieces.size()), tokenizer->size() - 4);
    for (const auto& piece : model.pieces) EXPECT_EQ(piece.text, tokenizer->piece(piece.id));
  }
}

}  // namespace
}  // namespace stretto::text
