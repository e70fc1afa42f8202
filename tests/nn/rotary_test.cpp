#include "nn/rotary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace stretto::nn {
namespace {

void expect_frequencies(const kernels::RotaryAngles& angles,
                        const std::vector<std::pair<int64_t, double>>& expected) {
  ASSERT_TRUE(angles.frequencies.defined());
  for (const auto& [pair, frequency] : expected) {
    EXPECT_NEAR(angles.frequencies[pair].item<double>() / frequency, 1, 1e-12) << "pair " << pair;
  }
}

TEST(RotaryAngles, OfThePaperAreTheOperatorsOwn) {
  EXPECT_FALSE(rotary_angles({}, 8).frequencies.defined());
  EXPECT_EQ(rotary_angles({}, 8).factor, 1);
}

TEST(RotaryAngles, HaveTheBaseThatIsAsked) {
  const auto angles = rotary_angles({.base = 500000}, 8);
  ASSERT_EQ(angles.frequencies.size(0), 4);
  for (int64_t j = 0; j < 4; ++j) {
    EXPECT_NEAR(angles.frequencies[j].item<double>(), std::pow(500000, -2 * double(j) / 8), 1e-15);
  }
  EXPECT_EQ(angles.factor, 1);
}

TEST(RotaryAngles, LinearScalingDividesPositions) {
  expect_frequencies(rotary_angles({.scaling = "linear", .factor = 4}, 8),
                     {{0, 0.25}, {1, 0.025}, {2, 0.0025}, {3, 0.00025}});
}

// Numbers of the formula in transformers 4.57 (modeling_rope_utils.py) for Llama 3.1 8B.
TEST(RotaryAngles, OfLlama3SlowDownSlowPairsAlone) {
  const RotaryOptions llama{
      .base = 500000, .scaling = "llama3", .factor = 8, .original_positions = 8192};
  const auto angles = rotary_angles(llama, 128);
  ASSERT_EQ(angles.frequencies.size(0), 64);
  expect_frequencies(angles, {{0, 1.0},
                              {15, 0.04616405026546052},
                              {28, 0.0032114459947525913},
                              {29, 0.002166570763503359},
                              {30, 0.0013718935677611381},
                              {33, 0.00031269375038406517},
                              {36, 7.78465527393245e-05},
                              {63, 3.068925988914511e-07}});
  EXPECT_EQ(angles.factor, 1);
}

// The same for Qwen2.5 with YaRN.
TEST(RotaryAngles, OfYarnPassFromFastPairsToSlowOnes) {
  RotaryOptions yarn{.base = 1000000, .scaling = "yarn", .factor = 4, .original_positions = 32768};
  const auto angles = rotary_angles(yarn, 128);
  expect_frequencies(angles, {{0, 1.0},
                              {10, 0.1154781984689458},
                              {23, 0.006978305848598663},
                              {24, 0.005375321490790102},
                              {35, 0.0002462584069089387},
                              {39, 6.490394320837028e-05},
                              {40, 4.445698525097307e-05},
                              {41, 3.582531425592407e-05},
                              {63, 3.102344401879299e-07}});
  EXPECT_NEAR(angles.factor, 1.138629436111989, 1e-12);
  yarn.attention_factor = 1.5;
  EXPECT_EQ(rotary_angles(yarn, 128).factor, 1.5);
}

TEST(RotaryAngles, OfYarnFitNarrowHeads) {
  const auto angles = rotary_angles({.scaling = "yarn", .factor = 2, .original_positions = 64}, 8);
  expect_frequencies(angles, {{0, 1.0}, {1, 0.075}, {2, 0.005}, {3, 0.0005}});
}

TEST(RotaryAngles, RefuseAnOddWidth) {
  EXPECT_THROW(rotary_angles({}, 7), c10::Error);
}

}  // namespace
}  // namespace stretto::nn
