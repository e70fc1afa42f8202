#include "audio/time_stretch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "tests/audio/sounds.h"

namespace stretto::audio {
namespace {

/// Times that a sound passes 0 upward, per second.
double passes_per_second(const std::vector<float>& sound, int64_t rate) {
  int64_t passes = 0;
  for (size_t i = 1; i < sound.size(); ++i) passes += sound[i - 1] < 0 && sound[i] >= 0 ? 1 : 0;
  return static_cast<double>(passes) * static_cast<double>(rate) /
         static_cast<double>(sound.size());
}

TEST(TimeStretch, ChangesTheLengthAndKeepsThePitch) {
  const auto sound = test::tone(440, 16000, 16000);
  for (const double tempo : {0.5, 0.8, 1.1, 1.25, 2.0}) {
    const auto got = stretched(sound, 16000, tempo);
    EXPECT_EQ(got.size(), static_cast<size_t>(std::llround(16000 / tempo)));
    EXPECT_NEAR(passes_per_second(got, 16000), 440, 10) << tempo;
    double squares = 0;
    for (const float sample : got) squares += static_cast<double>(sample) * sample;
    // A tone of amplitude 1/2: windows that do not fit would cancel each other.
    EXPECT_NEAR(squares / static_cast<double>(got.size()), 0.125, 0.01) << tempo;
  }
}

TEST(TimeStretch, TheSameTempoIsTheSameSound) {
  const auto sound = test::tone(440, 16000, 1000);
  EXPECT_EQ(stretched(sound, 16000, 1), sound);
  EXPECT_TRUE(stretched({}, 16000, 1.5).empty());
}

TEST(TimeStretch, SoundsOfFewSamplesAndSilenceStayFinite) {
  for (const size_t samples : {1, 2, 100, 700}) {
    for (const float value : stretched(std::vector<float>(samples, 0.5F), 8000, 0.7)) {
      EXPECT_TRUE(std::isfinite(value));
      EXPECT_LE(std::abs(value), 0.51F);
    }
    for (const float value : stretched(std::vector<float>(samples), 8000, 1.3)) {
      EXPECT_EQ(value, 0);
    }
  }
}

TEST(TimeStretch, RefusesATempoWithoutMeaning) {
  EXPECT_THROW(stretched(std::vector<float>(5), 16000, 0), std::invalid_argument);
  EXPECT_THROW(stretched(std::vector<float>(5), 16000, std::nan("")), std::invalid_argument);
  EXPECT_THROW(stretched(std::vector<float>(5), 0, 1.1), std::invalid_argument);
}

}  // namespace
}  // namespace stretto::audio
