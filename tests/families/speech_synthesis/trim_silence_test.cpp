#include "families/speech_synthesis/trim_silence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace stretto::tasks {
namespace {

/// So many samples of a square wave, whose root mean square is its height.
void add(std::vector<float>& sound, int64_t count, float height) {
  for (int64_t i = 0; i < count; ++i) sound.push_back(i % 2 == 0 ? height : -height);
}

std::vector<float> spoken(float before, float behind) {
  std::vector<float> sound;
  add(sound, 100, before);
  add(sound, 200, 0.5F);
  add(sound, 70, behind);
  return sound;
}

TEST(TrimSilence, CutsWhatIsFarBelowTheLoudestFrame) {
  EXPECT_EQ(sounding_part(spoken(0.001F, 0), 40, 10, 0), (SoundPart{.begin = 100, .end = 300}));
  EXPECT_EQ(sounding_part(spoken(0.001F, 0), 60, 10, 0), (SoundPart{.begin = 0, .end = 300}))
      << "54 dB below";
}

TEST(TrimSilence, LeavesAMarginWithinTheSound) {
  EXPECT_EQ(sounding_part(spoken(0, 0), 40, 10, 25), (SoundPart{.begin = 75, .end = 325}));
  EXPECT_EQ(sounding_part(spoken(0, 0), 40, 10, 1000), (SoundPart{.begin = 0, .end = 370}));
}

TEST(TrimSilence, LeavesSilenceWithinSpeech) {
  auto sound = spoken(0, 0);
  add(sound, 30, 0.5F);
  EXPECT_EQ(sounding_part(sound, 40, 10, 0), (SoundPart{.begin = 100, .end = 400}));
}

TEST(TrimSilence, LeavesASoundWholeThatIsSilentOrWhereNothingIsAsked) {
  const std::vector<float> silence(50);
  EXPECT_EQ(sounding_part(silence, 40, 10, 0), (SoundPart{.begin = 0, .end = 50}));
  EXPECT_EQ(sounding_part(spoken(0, 0), 0, 10, 0), (SoundPart{.begin = 0, .end = 370}));
  EXPECT_EQ(sounding_part({}, 40, 10, 0), (SoundPart{}));
}

}  // namespace
}  // namespace stretto::tasks
