#include "audio/resample.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/audio/sounds.h"

namespace stretto::audio {
namespace {

TEST(Resample, AToneStaysTheSameTone) {
  for (const auto& [from, to] :
       std::vector<std::pair<int64_t, int64_t>>{{44100, 16000}, {8000, 16000}, {48000, 22050}}) {
    const auto got = resampled(test::tone(440, from, from), from, to);
    const auto wanted = test::tone(440, to, to);
    ASSERT_EQ(got.size(), wanted.size());
    // The ends lack neighbours.
    for (size_t i = 500; i + 500 < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-4) << from;
  }
}

TEST(Resample, TakesAwayWhatTheNewRateCannotHold) {
  const auto got = resampled(test::tone(10000, 44100, 44100), 44100, 16000);
  for (size_t i = 500; i + 500 < got.size(); ++i) ASSERT_NEAR(got[i], 0, 1e-4);
}

TEST(Resample, TheNumberOfSamplesIsRoundedUp) {
  EXPECT_EQ(resampled(std::vector<float>(3, 0.5F), 44100, 16000).size(), 2u);
  EXPECT_EQ(resampled(std::vector<float>(1, 0.5F), 44100, 16000).size(), 1u);
  EXPECT_EQ(resampled(std::vector<float>(441, 0.5F), 44100, 16000).size(), 160u);
  EXPECT_TRUE(resampled({}, 44100, 16000).empty());
}

TEST(Resample, TheSameRateChangesNothing) {
  const auto sound = test::tone(100, 8000, 50);
  EXPECT_EQ(resampled(sound, 8000, 8000), sound);
}

TEST(Resample, RefusesRatesThatAreNone) {
  const std::vector<float> sound(3);
  EXPECT_THROW(resampled(sound, 0, 8000), std::invalid_argument);
  EXPECT_THROW(resampled(sound, 8000, -1), std::invalid_argument);
}

}  // namespace
}  // namespace stretto::audio
