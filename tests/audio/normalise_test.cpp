#include "audio/normalise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

namespace stretto::audio {
namespace {

Features three_frames() {
  return {.width = 2, .values = {1, 10, 2, 30, 6, 20}};
}

void expect_values(const Features& features, const std::vector<double>& wanted) {
  ASSERT_EQ(features.values.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(features.values[i], wanted[i], 1e-4) << i;
}

TEST(Normalise, EachFeatureHasMean0AndDeviation1OverFrames) {
  Features features = three_frames();
  normalise(features);
  const double first = std::sqrt(14.0 / 3), second = std::sqrt(200.0 / 3);
  expect_values(features, {-2 / first, -10 / second, -1 / first, 10 / second, 3 / first, 0});
}

TEST(Normalise, AnUnbiasedDeviationDividesByOneLess) {
  Features features = three_frames();
  normalise(features, {.is_unbiased = true});
  const double first = std::sqrt(7.0), second = 10;
  expect_values(features, {-2 / first, -10 / second, -1 / first, 10 / second, 3 / first, 0});
}

TEST(Normalise, OrAllOfThemHaveOne) {
  Features features{.width = 2, .values = {1, 3, 5, 7}};
  normalise(features, {.over = NormaliseOver::kAll});
  const double deviation = std::sqrt(5.0);
  expect_values(features, {-3 / deviation, -1 / deviation, 1 / deviation, 3 / deviation});
}

TEST(Normalise, OneFrameBecomesZeros) {
  for (const bool is_unbiased : {false, true}) {
    Features features{.width = 2, .values = {5, -3}};
    normalise(features, {.is_unbiased = is_unbiased});
    expect_values(features, {0, 0});
  }
  Features none{.width = 2, .values = {}};
  normalise(none);
  EXPECT_TRUE(none.values.empty());
}

TEST(Normalise, GivenNumbersAreOneOrOneForEachFeature) {
  Features features = three_frames();
  normalise_by(features, std::vector<double>{1, 10}, std::vector<double>{2});
  expect_values(features, {0, 0, 0.5, 10, 2.5, 5});
  features = three_frames();
  normalise_by(features, std::vector<double>{0}, std::vector<double>{1, 10});
  expect_values(features, {1, 1, 2, 3, 6, 2});
  EXPECT_THROW(normalise_by(features, std::vector<double>(3), std::vector<double>{1}),
               std::invalid_argument);
  EXPECT_THROW(normalise_by(features, std::vector<double>{1}, {}), std::invalid_argument);
}

}  // namespace
}  // namespace stretto::audio
