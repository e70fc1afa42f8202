#include "audio/sound_features.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "audio/wave_writer.h"
#include "tests/audio/sounds.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::audio {
namespace {

class SoundFeaturesTest : public ::testing::Test {
 protected:
  SoundFeaturesTest() {
    keys_.rate = 8000;
    keys_.num_mels = 20;
  }
  std::string wave(const std::string& name, const std::vector<float>& samples, int64_t rate) {
    const std::string path = (folder_ / name).string();
    write_wave(path, samples, rate);
    return path;
  }
  /// How loud the difference of two sounds is beside the first, in dB.
  static double difference_level(const std::vector<float>& sound, const std::vector<float>& other) {
    double squares = 0, differences = 0;
    for (size_t i = 0; i < sound.size(); ++i) {
      squares += static_cast<double>(sound[i]) * sound[i];
      differences += std::pow(static_cast<double>(other[i]) - sound[i], 2);
    }
    return 10 * std::log10(differences / squares);
  }

  testing::TempDir folder_;
  FeatureKeys keys_;
  AugmentKeys augment_;
  std::vector<float> sound_ = test::tone(440, 8000, 8000);
};

TEST_F(SoundFeaturesTest, WithoutChangesTrainingSeesWhatValidationSees) {
  for (const char* normalise : {"none", "per_feature", "global"}) {
    keys_.normalise = normalise;
    const SoundFeatures sounds(keys_, augment_, 1);
    EXPECT_EQ(sounds.training(sound_, 3, 5).values, sounds(sound_).values) << normalise;
    EXPECT_EQ(sounds(sound_).num_frames(), sounds.num_frames(8000));
    EXPECT_EQ(sounds.training_sound(sound_, 3, 5), sound_);
  }
}

TEST_F(SoundFeaturesTest, FixedNumbersNormalise) {
  keys_.normalise = "none";
  const auto plain = SoundFeatures(keys_)(sound_).values;
  keys_.normalise = "fixed";
  keys_.mean = std::vector<double>(20, -2);
  keys_.mean[1] = 5;
  keys_.std = {4};
  const auto fixed = SoundFeatures(keys_)(sound_).values;
  ASSERT_EQ(fixed.size(), plain.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_NEAR(fixed[i], (plain[i] - (i % 20 == 1 ? 5 : -2)) / 4, 1e-5);
  }
}

TEST_F(SoundFeaturesTest, APeakIsDividedOut) {
  keys_.normalise_peak = true;
  keys_.normalise = "none";
  const SoundFeatures sounds(keys_);
  std::vector<float> quiet = sound_;
  for (float& sample : quiet) sample /= 8;
  const auto loud = sounds(sound_).values, other = sounds(quiet).values;
  for (size_t i = 0; i < loud.size(); ++i) ASSERT_NEAR(loud[i], other[i], 1e-2);
}

using Changes = std::vector<std::pair<const char*, std::function<void(AugmentKeys&)>>>;

TEST_F(SoundFeaturesTest, EachChangeIsAFunctionOfSeedEpochAndSample) {
  const std::string noise = wave("noise.wav", test::tone(1000, 16000, 40000), 16000);
  const std::string room = wave("room.wav", {0, 0.9F, 0, 0, 0.4F, 0, -0.2F}, 8000);
  const Changes changes{
      {"speed", [](auto& a) { a.speed_range = 0.1; }},
      {"stretch", [](auto& a) { a.stretch_range = 0.1; }},
      {"noise", [](auto& a) { a.noise_probability = 1; }},
      {"noise of files", [&](auto& a) { a.noise_files = {noise}, a.noise_file_probability = 1; }},
      {"room",
       [&](auto& a) { a.impulse_files = {room}, a.impulse_probability = 1, a.speed_range = 0.01; }},
      {"masks", [](auto& a) { a.feature_masks = 2, a.time_masks = 2; }},
  };
  for (const auto& [what, change] : changes) {
    AugmentKeys augment;
    change(augment);
    EXPECT_FALSE(augment.is_empty()) << what;
    const SoundFeatures sounds(keys_, augment, 1), again(keys_, augment, 1);
    const SoundFeatures other_seed(keys_, augment, 2);
    const auto values = sounds.training(sound_, 3, 5).values;
    EXPECT_EQ(values, again.training(sound_, 3, 5).values) << what;
    EXPECT_NE(values, sounds.training(sound_, 4, 5).values) << what;
    EXPECT_NE(values, sounds.training(sound_, 3, 6).values) << what;
    EXPECT_NE(values, other_seed.training(sound_, 3, 5).values) << what;
    EXPECT_NE(values, sounds(sound_).values) << what;
    for (const float value : values) ASSERT_TRUE(std::isfinite(value)) << what;
  }
}

TEST_F(SoundFeaturesTest, AStepThatIsLeftOutChangesNoOtherStep) {
  augment_.noise_probability = 1;
  const auto noisy = SoundFeatures(keys_, augment_, 1).training_sound(sound_, 0, 0);
  augment_.feature_masks = 3;
  augment_.noise_files = {wave("noise.wav", test::tone(1000, 8000, 9000), 8000)};
  augment_.noise_file_probability = 0;
  EXPECT_EQ(SoundFeatures(keys_, augment_, 1).training_sound(sound_, 0, 0), noisy);
}

TEST_F(SoundFeaturesTest, SpeedsAreThoseOfTheList) {
  augment_.speeds = {0.5, 1, 2};
  const SoundFeatures sounds(keys_, augment_, 1);
  std::vector<int64_t> counts(3);
  for (int64_t sample = 0; sample < 60; ++sample) {
    const auto size = sounds.training_sound(sound_, 0, sample).size();
    ASSERT_TRUE(size == 16000 || size == 8000 || size == 4000) << size;
    ++counts[size == 16000 ? 0 : size == 8000 ? 1 : 2];
  }
  for (const int64_t count : counts) EXPECT_GT(count, 8);
}

TEST_F(SoundFeaturesTest, NoSoundHasFewerFramesThanSaid) {
  augment_.speed_range = 0.2;
  augment_.stretch_range = 0.1;
  const SoundFeatures sounds(keys_, augment_, 1);
  for (int64_t sample = 0; sample < 40; ++sample) {
    const auto features = sounds.training(sound_, 0, sample);
    EXPECT_GE(features.num_frames(), sounds.fewest_frames(8000));
  }
  EXPECT_LT(sounds.fewest_frames(8000), sounds.num_frames(8000));
  EXPECT_EQ(SoundFeatures(keys_).fewest_frames(8000), sounds.num_frames(8000));
}

TEST_F(SoundFeaturesTest, ANoiseOfAFileHasItsRatio) {
  augment_.noise_files = {wave("short.wav", test::tone(1700, 8000, 900), 8000)};
  augment_.noise_file_probability = 1;
  augment_.min_snr = augment_.max_snr = 12;
  const SoundFeatures sounds(keys_, augment_, 1);
  EXPECT_NEAR(difference_level(sound_, sounds.training_sound(sound_, 0, 0)), -12, 0.01);
}

TEST_F(SoundFeaturesTest, WhiteNoiseHasItsLevel) {
  augment_.noise_probability = 1;
  augment_.min_noise_level = augment_.max_noise_level = -60;
  const SoundFeatures sounds(keys_, augment_, 1);
  // The tone has the level 20 log10(1 / sqrt(8)), -9.03 dB.
  EXPECT_NEAR(difference_level(sound_, sounds.training_sound(sound_, 0, 0)), -60 + 9.03, 0.3);
}

TEST_F(SoundFeaturesTest, MasksOfOtherFeaturesHaveTheirMean) {
  keys_.normalise = "none";
  augment_.time_masks = 1;
  augment_.time_mask_frames = 50;
  const SoundFeatures sounds(keys_, augment_, 1);
  const auto plain = sounds(sound_).values;
  double sum = 0;
  for (const float value : plain) sum += value;
  int64_t hidden = 0;
  const auto masked_values = sounds.training(sound_, 0, 1).values;
  for (size_t i = 0; i < plain.size(); ++i) {
    if (masked_values[i] == plain[i]) continue;
    ++hidden;
    ASSERT_NEAR(masked_values[i], sum / static_cast<double>(plain.size()), 1e-4);
  }
  EXPECT_GT(hidden, 0);
}

TEST_F(SoundFeaturesTest, OnlyTrainingHasDither) {
  keys_.dither = 1e-3;
  keys_.normalise = "none";
  const SoundFeatures sounds(keys_, augment_, 1);
  const std::vector<float> silence(4000);
  for (const float value : sounds(silence).values) ASSERT_EQ(value, sounds(silence).values[0]);
  EXPECT_GT(sounds.training(silence, 0, 0).values[0], sounds(silence).values[0] + 1);
}

TEST_F(SoundFeaturesTest, EmptyAndSilentSoundsAreNoTrouble) {
  augment_.speed_range = augment_.stretch_range = 0.1;
  augment_.noise_files = {wave("noise.wav", test::tone(1000, 8000, 9000), 8000)};
  augment_.impulse_files = {wave("room.wav", {0.5F, 0.1F}, 8000)};
  augment_.noise_file_probability = augment_.impulse_probability = 1;
  augment_.feature_masks = augment_.time_masks = 1;
  for (const char* normalise : {"none", "per_feature", "global"}) {
    keys_.normalise = normalise;
    const SoundFeatures sounds(keys_, augment_, 1);
    EXPECT_EQ(sounds.training({}, 0, 0).num_frames(), 0);
    EXPECT_EQ(sounds({}).num_frames(), 0);
    for (const size_t samples : {1, 50, 4000}) {
      const auto features = sounds.training(std::vector<float>(samples), 0, 0);
      EXPECT_GT(features.num_frames(), 0);
      for (const float value : features.values) ASSERT_TRUE(std::isfinite(value));
    }
  }
}

TEST_F(SoundFeaturesTest, FilesThatAreNoNoisesAreNamed) {
  const std::string text = folder_.write("noise.txt", "not a sound");
  augment_.noise_files = {text};
  const auto told = [&] {
    return testing::failure(ExitCode::kBadData, [&] { SoundFeatures(keys_, augment_, 1); })
        .message();
  };
  EXPECT_NE(told().find(text), std::string::npos) << told();
  const std::string empty = wave("empty.wav", {}, 8000);
  augment_.noise_files = {empty};
  EXPECT_NE(told().find(empty), std::string::npos) << told();

  const std::string silent = wave("silent.wav", std::vector<float>(50), 8000);
  augment_.noise_files = {};
  augment_.impulse_files = {silent};
  augment_.impulse_probability = 1;
  const SoundFeatures sounds(keys_, augment_, 1);
  const auto message =
      testing::failure(ExitCode::kBadData, [&] { sounds.training(sound_, 0, 0); }).message();
  EXPECT_NE(message.find(silent), std::string::npos) << message;
}

TEST_F(SoundFeaturesTest, RangesThatEndBeforeTheyBeginAreConflicts) {
  const Changes wrong{
      {"augment.min_noise_level",
       [](auto& a) { a.noise_probability = 1, a.min_noise_level = -10; }},
      {"augment.min_snr", [](auto& a) { a.noise_files = {"a.wav"}, a.min_snr = 40; }},
      {"augment.speed_range", [](auto& a) { a.speed_range = 0.1, a.speeds = {1.1}; }},
  };
  for (const auto& [key, change] : wrong) {
    AugmentKeys augment;
    change(augment);
    const auto conflicts = augment_conflicts(augment, "augment");
    ASSERT_EQ(conflicts.size(), 1u) << key;
    EXPECT_EQ(conflicts[0].keys.front(), key);
    EXPECT_THROW(SoundFeatures(keys_, augment, 1), std::invalid_argument);
  }
  EXPECT_TRUE(augment_conflicts(augment_, "augment").empty());
  EXPECT_TRUE(augment_.is_empty());
}

TEST_F(SoundFeaturesTest, TheMiddleOfAFrameHasATime) {
  keys_.edges = "snip";
  EXPECT_NEAR(SoundFeatures(keys_).seconds_at(0), 0.016, 1e-9) << "of 256 samples";
  keys_.edges = "cover";
  EXPECT_NEAR(SoundFeatures(keys_).seconds_at(50), 0.5, 1e-9);
}

}  // namespace
}  // namespace stretto::audio
