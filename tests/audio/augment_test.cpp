#include "audio/augment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random_streams.h"
#include "tests/audio/sounds.h"

namespace stretto::audio {
namespace {

Features ones(int64_t frames, int64_t width) {
  return {.width = width, .values = std::vector<float>(static_cast<size_t>(frames * width), 1)};
}

Features masked(int64_t frames, const MaskOptions& options, int64_t sample, int64_t epoch = 0) {
  Features features = ones(frames, 40);
  auto random = streams::augmentation(1, epoch, sample);
  mask(features, options, random);
  return features;
}

TEST(AudioAugment, MasksAreAFunctionOfSeedEpochAndSample) {
  const MaskOptions options{.num_feature_masks = 2, .num_frame_masks = 2};
  EXPECT_EQ(masked(100, options, 3).values, masked(100, options, 3).values);
  EXPECT_NE(masked(100, options, 3).values, masked(100, options, 4).values);
  EXPECT_NE(masked(100, options, 3).values, masked(100, options, 3, 1).values);
}

TEST(AudioAugment, AMaskCoversWholeRowsOrColumns) {
  int64_t most_frames = 0, most_features = 0;
  for (int64_t sample = 0; sample < 200; ++sample) {
    const Features by_frame = masked(100, {.num_frame_masks = 1, .most_frames = 30}, sample);
    const Features by_feature = masked(100, {.num_feature_masks = 1, .most_features = 8}, sample);
    int64_t frames = 0, features = 0;
    for (int64_t f = 0; f < 100; ++f) {
      const auto row = by_frame.frame(f);
      for (const float value : row) ASSERT_EQ(value, row[0]);
      frames += row[0] == 0 ? 1 : 0;
    }
    for (size_t i = 0; i < 40; ++i) {
      for (int64_t f = 0; f < 100; ++f) ASSERT_EQ(by_feature.frame(f)[i], by_feature.frame(0)[i]);
      features += by_feature.frame(0)[i] == 0 ? 1 : 0;
    }
    most_frames = std::max(most_frames, frames);
    most_features = std::max(most_features, features);
  }
  EXPECT_EQ(most_frames, 30);
  EXPECT_EQ(most_features, 8);
}

TEST(AudioAugment, AMaskOfFramesCoversAShareOfTheSoundAtMost) {
  for (int64_t sample = 0; sample < 100; ++sample) {
    const Features features =
        masked(10, {.num_frame_masks = 1, .most_frames = 100, .most_frame_share = 0.2}, sample);
    int64_t hidden = 0;
    for (int64_t f = 0; f < 10; ++f) hidden += features.frame(f)[0] == 0 ? 1 : 0;
    EXPECT_LE(hidden, 2);
  }
  Features none = ones(0, 40);
  auto random = streams::augmentation(1, 0, 0);
  mask(none, {.num_feature_masks = 1, .num_frame_masks = 1}, random);
  EXPECT_TRUE(none.values.empty());
}

TEST(AudioAugment, AFasterSoundIsShorterAndHigher) {
  const auto sound = test::tone(400, 16000, 16000);
  const auto faster = at_speed(sound, 16000, 1.25);
  ASSERT_EQ(faster.size(), 12800u);
  const auto wanted = test::tone(500, 16000, 12800);
  for (size_t i = 500; i + 500 < faster.size(); ++i) ASSERT_NEAR(faster[i], wanted[i], 1e-3);
  EXPECT_EQ(at_speed(sound, 16000, 1), sound);
  EXPECT_EQ(at_speed(sound, 16000, 0.8).size(), 20000u);
}

TEST(AudioAugment, NoiseHasItsLevel) {
  std::vector<float> sound(20000);
  auto random = streams::augmentation(1, 2, 3);
  add_noise(sound, -40, random);
  double squares = 0;
  for (const float sample : sound) squares += static_cast<double>(sample) * sample;
  EXPECT_NEAR(std::sqrt(squares / 20000), 0.01, 0.0005);
}

TEST(AudioAugment, AnotherSoundIsAddedAtItsRatioAndRepeated) {
  std::vector<float> sound(1000, 0.5F);
  const std::vector<float> noise{0.1F, -0.1F, 0.1F, -0.1F};
  add_sound(sound, noise, 1, 20);
  for (size_t i = 0; i < sound.size(); ++i) {
    ASSERT_NEAR(sound[i], 0.5 + (i % 2 == 0 ? -0.05 : 0.05), 1e-6) << i;
  }
  const auto same = sound;
  add_sound(sound, std::vector<float>(7), 0, 20);
  add_sound(sound, {}, 0, 20);
  EXPECT_EQ(sound, same);
  std::vector<float> silence(5);
  add_sound(silence, noise, 0, 20);
  EXPECT_EQ(silence, std::vector<float>(5));
}

}  // namespace
}  // namespace stretto::audio
