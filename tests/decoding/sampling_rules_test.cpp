#include "decoding/sampling_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <variant>
#include <vector>

#include "base/random.h"

namespace stretto::decoding {
namespace {

std::vector<float> normalised_row(std::vector<float> logits) {
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x));
  for (float& x : logits) x = static_cast<float>(x - std::log(sum));
  return logits;
}

std::vector<float> random_row(RandomStream& random, int size) {
  std::vector<float> logits;
  for (int i = 0; i < size; ++i) logits.push_back(static_cast<float>(3 * random.normal()));
  return normalised_row(logits);
}

/// The distribution of the warpers of `transformers` in their order: temperature, top-k, top-p,
/// min-p, each of which leaves tokens out and normalises what is left.
std::vector<double> warped(const std::vector<float>& row, const SamplingOptions& options) {
  std::vector<double> scores(row.begin(), row.end());
  for (double& score : scores) score /= options.temperature;
  const auto probabilities = [&] {
    double sum = 0;
    for (const double score : scores) sum += std::exp(score);
    std::vector<double> all;
    for (const double score : scores) all.push_back(std::exp(score) / sum);
    return all;
  };
  const auto drop = [&](size_t token) { scores[token] = -INFINITY; };
  if (options.top_k > 0) {
    std::vector<double> sorted = scores;
    std::ranges::sort(sorted, std::greater<>());
    const double least = sorted[std::min(sorted.size(), static_cast<size_t>(options.top_k)) - 1];
    for (size_t i = 0; i < scores.size(); ++i) {
      if (scores[i] < least) drop(i);
    }
  }
  if (options.top_p < 1) {  // from the least likely on, while the rest still has the mass
    const std::vector<double> all = probabilities();
    std::vector<size_t> ascending(all.size());
    for (size_t i = 0; i < all.size(); ++i) ascending[i] = i;
    std::ranges::stable_sort(ascending, {}, [&](size_t i) { return all[i]; });
    double cumulative = 0;
    for (size_t i = 0; i + 1 < ascending.size(); ++i) {
      cumulative += all[ascending[i]];
      if (cumulative <= 1 - options.top_p) drop(ascending[i]);
    }
  }
  if (options.min_p > 0) {
    const std::vector<double> all = probabilities();
    const double least = options.min_p * *std::ranges::max_element(all);
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i] < least) drop(i);
    }
  }
  return probabilities();
}

TEST(SamplingRules, ShapeTheDistributionAsTransformersDo) {
  RandomStream random(11);
  const std::vector<SamplingOptions> all{{},
                                         {.temperature = 0.7},
                                         {.top_k = 5},
                                         {.top_p = 0.8},
                                         {.min_p = 0.1},
                                         {.temperature = 1.5, .top_k = 9, .min_p = 0.05},
                                         {.temperature = 0.6, .top_k = 12, .top_p = 0.9},
                                         {.temperature = 2, .top_p = 0.95, .min_p = 0.02},
                                         {.top_k = 1000, .top_p = 0.3, .min_p = 0.9}};
  for (size_t number = 0; number < all.size(); ++number) {
    for (int round = 0; round < 20; ++round) {
      const std::vector<float> row = random_row(random, 40);
      const std::vector<double> wanted = warped(row, all[number]);
      TokenPool pool(row);
      for (const SamplingRule& rule : sampling_rules(all[number])) {
        std::visit([&](const auto& one) { one.apply(pool); }, rule);
      }
      // Evenly spaced draws find each token as often as its share.
      constexpr int kDraws = 20000;
      std::vector<double> shares(row.size(), 0);
      for (int i = 0; i < kDraws; ++i) {
        ++shares[static_cast<size_t>(pool.draw((i + 0.5) / kDraws))];
      }
      for (size_t token = 0; token < row.size(); ++token) {
        EXPECT_NEAR(shares[token] / kDraws, wanted[token], 1.0 / kDraws)
            << "options " << number << ", token " << token;
      }
    }
  }
}

TEST(SamplingRules, LeaveOutThoseThatChangeNothing) {
  EXPECT_TRUE(sampling_rules({}).empty());
  EXPECT_EQ(sampling_rules({.temperature = 0.5, .top_k = 3, .top_p = 0.9, .min_p = 0.1}).size(),
            4U);
}

TEST(SamplingRules, MinPKeepsTheLikeliestTokenWhateverItIs) {
  const std::vector<float> row = normalised_row({0, 0.001F, 0});
  const std::vector<SamplingRule> rules{MinP{0.99999}};
  for (const double uniform : {0.0, 0.5, 0.999}) EXPECT_EQ(draw(row, uniform, rules), 1);
}

// 1e-320 is such a temperature where a processor flushes subnormal numbers.
TEST(SamplingRules, ATemperatureThatCountsAsZeroDrawsTheLikeliest) {
  const std::vector<float> row = normalised_row({0, 1, 0.5F});
  const std::vector<SamplingRule> rules{Temperature{0}};
  for (const double uniform : {0.0, 0.5, 0.999}) EXPECT_EQ(draw(row, uniform, rules), 1);
}

TEST(SamplingRules, DrawNothingWhereNothingCanCome) {
  EXPECT_EQ(draw(std::vector<float>{kNever, kNever}, 0.5, sampling_rules({.min_p = 0.5})), -1);
  EXPECT_EQ(draw(std::vector<float>{kNever, -1, kNever}, 0.5, {}), 1);
}

TEST(SeenTokens, AreCountedInTheOutputAlone) {
  const std::vector<int64_t> prompt{7, 3, 7}, output{5, 3, 5};
  EXPECT_EQ(seen_tokens(prompt, output), (std::vector<SeenToken>{{3, 1}, {5, 2}, {7, 0}}));
}

TEST(RepetitionRules, PenaltyIsThatOfTransformers) {
  const RepetitionRules rules({.repetition_penalty = 2});
  EXPECT_DOUBLE_EQ(rules.penalised(3.0, {.token = 0, .in_output = 0}), 1.5);
  EXPECT_DOUBLE_EQ(rules.penalised(-3.0, {.token = 0, .in_output = 4}), -6.0);
  EXPECT_FALSE(RepetitionRules({}).active());
  EXPECT_TRUE(rules.active());
}

TEST(RepetitionRules, FrequencyAndPresenceCountTheOutput) {
  const RepetitionRules rules({.frequency_penalty = 0.5, .presence_penalty = 0.25});
  EXPECT_DOUBLE_EQ(rules.penalised(1.0, {.token = 0, .in_output = 0}), 1.0);
  EXPECT_DOUBLE_EQ(rules.penalised(1.0, {.token = 0, .in_output = 3}), 1.0 - 1.5 - 0.25);
}

// A log-probability is a logit minus what all of a row have in common.
TEST(RepetitionRules, OfALogProbabilityAreThoseOfItsLogit) {
  const RepetitionRules rules({.repetition_penalty = 1.3, .presence_penalty = 0.1});
  const SeenToken seen{.token = 0, .in_output = 1};
  for (const double logit : {2.5, -1.5}) {
    const double normaliser = 4.25;
    EXPECT_NEAR(rules.penalised(static_cast<float>(logit - normaliser), normaliser, seen),
                rules.penalised(logit, seen) - normaliser, 1e-6);
  }
  EXPECT_EQ(rules.penalised(kNever, 4.25, seen), kNever);
}

}  // namespace
}  // namespace stretto::decoding
