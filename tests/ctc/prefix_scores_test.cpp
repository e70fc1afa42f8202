#include "ctc/prefix_scores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <vector>

#include "base/random.h"

namespace stretto::ctc {
namespace {

constexpr int64_t kClasses = 3;  // two labels and the blank
using Labels = std::vector<int64_t>;

std::vector<float> some_frames(int64_t count) {
  RandomStream random(5);
  std::vector<float> all;
  for (int64_t t = 0; t < count; ++t) {
    std::vector<double> frame;
    double sum = 0;
    for (int64_t c = 0; c < kClasses; ++c) sum += frame.emplace_back(std::exp(random.normal()));
    for (const double one : frame) all.push_back(static_cast<float>(std::log(one / sum)));
  }
  return all;
}

/// The probability of each text, summed over all alignments.
std::map<Labels, double> all_texts(const std::vector<float>& frames) {
  const auto count = std::ssize(frames) / kClasses;
  std::map<Labels, double> texts;
  for (int64_t path = 0; path < static_cast<int64_t>(std::pow(kClasses, count)); ++path) {
    Labels labels;
    int64_t rest = path, before = kClasses - 1;
    double log_prob = 0;
    for (int64_t t = 0; t < count; ++t, rest /= kClasses) {
      const int64_t now = rest % kClasses;
      log_prob += static_cast<double>(frames[static_cast<size_t>(t * kClasses + now)]);
      if (now != before && now != kClasses - 1) labels.push_back(now);
      before = now;
    }
    texts[labels] += std::exp(log_prob);
  }
  return texts;
}

double log_of_prefix(const std::map<Labels, double>& texts, const Labels& prefix) {
  double sum = 0;
  for (const auto& [labels, probability] : texts) {
    if (labels.size() < prefix.size()) continue;
    if (std::equal(prefix.begin(), prefix.end(), labels.begin())) sum += probability;
  }
  return std::log(sum);
}

TEST(PrefixScores, AreTheSumOverAllAlignments) {
  const auto frames = some_frames(5);
  const auto texts = all_texts(frames);
  const PrefixScores scores(frames, kClasses);
  const std::vector<Labels> prefixes{{}, {0}, {1}, {0, 0}, {0, 1}, {1, 0, 0}, {0, 1, 0, 1}};
  for (const Labels& prefix : prefixes) {
    PrefixScores::State state = scores.start();
    for (const int64_t label : prefix) state = scores.extended(state, label);
    EXPECT_NEAR(state.prefix, log_of_prefix(texts, prefix), 1e-6);
    std::vector<double> gains(kClasses);
    scores.gains(state, gains);
    for (int64_t label = 0; label < kClasses - 1; ++label) {
      Labels longer = prefix;
      longer.push_back(label);
      const double want = log_of_prefix(texts, longer) - log_of_prefix(texts, prefix);
      const double gain = gains[static_cast<size_t>(label)];
      if (std::isinf(want)) {
        EXPECT_LT(gain, -1e4) << prefix.size() << " " << label;  // too few frames for it
      } else {
        EXPECT_NEAR(gain, want, 1e-6) << prefix.size() << " " << label;
      }
    }
    EXPECT_NEAR(gains.back(), std::log(texts.at(prefix)) - log_of_prefix(texts, prefix), 1e-6);
  }
}

TEST(PrefixScores, WhatFramesExcludeIsFinite) {
  const auto frames = some_frames(2);
  const PrefixScores scores(frames, kClasses);
  // Two labels that are alike need three frames.
  const auto state = scores.extended(scores.start(), 1);
  std::vector<double> gains(kClasses);
  scores.gains(state, gains);
  EXPECT_EQ(gains[1], PrefixScores::kImpossible);
  EXPECT_GT(gains[0], PrefixScores::kImpossible);
  scores.gains(scores.extended(state, 1), gains);
  for (const double gain : gains) EXPECT_EQ(gain, PrefixScores::kImpossible);
}

TEST(PrefixScores, WithoutFramesATextEndsAtOnce) {
  const PrefixScores scores({}, kClasses);
  std::vector<double> gains(kClasses);
  scores.gains(scores.start(), gains);
  EXPECT_EQ(gains, (std::vector<double>{PrefixScores::kImpossible, PrefixScores::kImpossible, 0}));
  EXPECT_THROW(PrefixScores(std::vector<float>(4), kClasses), std::invalid_argument);
}

}  // namespace
}  // namespace stretto::ctc
