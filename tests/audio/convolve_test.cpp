#include "audio/convolve.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/random.h"

namespace stretto::audio {
namespace {

std::vector<float> random_sound(size_t samples, uint64_t key) {
  RandomStream random(key);
  std::vector<float> sound;
  for (size_t i = 0; i < samples; ++i) sound.push_back(static_cast<float>(random.uniform() - 0.5));
  return sound;
}

TEST(Convolve, IsTheSumOfItsDefinition) {
  for (const auto& [samples, taps] : std::vector<std::pair<size_t, size_t>>{
           {1, 1}, {10, 3}, {3, 10}, {2500, 700}, {700, 2500}, {5000, 1}}) {
    const auto sound = random_sound(samples, 1), impulse = random_sound(taps, 2);
    const auto got = convolved(sound, impulse);
    ASSERT_EQ(got.size(), samples + taps - 1);
    for (size_t t = 0; t < got.size(); ++t) {
      double sum = 0;
      for (size_t i = 0; i < taps; ++i) {
        if (t >= i && t - i < samples) sum += static_cast<double>(impulse[i]) * sound[t - i];
      }
      ASSERT_NEAR(got[t], sum, 2e-5) << samples << " by " << taps << ", " << t;
    }
  }
  EXPECT_TRUE(convolved({}, random_sound(3, 1)).empty());
  EXPECT_TRUE(convolved(random_sound(3, 1), {}).empty());
}

TEST(Reverberation, KeepsLengthPlaceAndLoudness) {
  const auto sound = random_sound(3000, 3);
  const auto delayed = reverberated(sound, std::vector<float>{0, 0, 0.1F, 0, -0.5F});
  ASSERT_EQ(delayed.size(), sound.size());
  double before = 0, after = 0, together = 0;
  for (size_t i = 0; i < sound.size(); ++i) {
    before += static_cast<double>(sound[i]) * sound[i];
    after += static_cast<double>(delayed[i]) * delayed[i];
    together += static_cast<double>(delayed[i]) * sound[i];
  }
  EXPECT_NEAR(after / before, 1, 1e-4);
  EXPECT_LT(together / before, -0.9) << "the loudest sample of the response has no delay";
  const auto same = reverberated(sound, std::vector<float>{0, 3, 0});
  for (size_t i = 0; i < sound.size(); ++i) ASSERT_NEAR(same[i], sound[i], 1e-5);
}

TEST(Reverberation, RefusesASilentResponse) {
  EXPECT_THROW(reverberated(random_sound(5, 1), {}), std::invalid_argument);
  EXPECT_THROW(reverberated(random_sound(5, 1), std::vector<float>(5)), std::invalid_argument);
  for (const float sample : reverberated(std::vector<float>(5), std::vector<float>{1})) {
    EXPECT_EQ(sample, 0);
  }
}

}  // namespace
}  // namespace stretto::audio
