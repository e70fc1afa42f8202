#include "audio/feature_keys.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/audio/sounds.h"

namespace stretto::audio {
namespace {

/// What options make of a sound.
std::vector<float> made_of(const FeatureOptions& options, int64_t samples = 4000) {
  return FeatureExtractor(options)(test::tone(700, options.rate, samples)).values;
}

TEST(FeatureKeys, TheDefaultsOfKaldiAreItsOwn) {
  FeatureKeys keys;
  keys.dialect = "kaldi";
  keys.edges = "snip";
  keys.num_mels = 23;
  keys.low_hz = 20;
  for (const int64_t rate : {8000, 11025, 16000, 22050}) {
    keys.rate = rate;
    EXPECT_EQ(made_of(keys.options()), made_of(kaldi_fbank(rate))) << rate;
  }
  keys.kind = "mfcc";
  keys.lifter = 22;
  keys.use_energy = true;
  EXPECT_EQ(made_of(keys.options()), made_of(kaldi_mfcc(22050)));
  EXPECT_EQ(keys.width(), 13);
}

TEST(FeatureKeys, TheDefaultsOfLibrosaAreItsOwn) {
  FeatureKeys keys;
  keys.rate = 22050;
  keys.window_seconds = 2048.5 / 22050;
  keys.hop_seconds = 512.5 / 22050;
  keys.num_mels = 128;
  keys.preemphasis = 0;
  keys.compression = "none";
  EXPECT_EQ(made_of(keys.options()), made_of(librosa_mel(22050)));
  keys.kind = "mfcc";
  keys.compression = "decibel";
  keys.num_coefficients = 20;
  EXPECT_EQ(made_of(keys.options()), made_of(librosa_mfcc(22050)));
}

TEST(FeatureKeys, LengthsAreWholeSamples) {
  FeatureKeys keys;
  EXPECT_EQ(keys.window_samples(), 400);
  EXPECT_EQ(keys.hop_samples(), 160);
  EXPECT_EQ(keys.options().fft_size, 512);
  keys.rate = 22050;  // Tacotron 2
  keys.window_seconds = 0.04644;
  keys.hop_seconds = 0.01161;
  EXPECT_EQ(keys.window_samples(), 1024);
  EXPECT_EQ(keys.hop_samples(), 256);
  EXPECT_EQ(keys.options().fft_size, 1024);
  keys.rate = 1000;
  keys.window_seconds = 0.07;  // 0.07 * 1000 is a little more or less than 70
  EXPECT_EQ(keys.window_samples(), 70);
}

TEST(FeatureKeys, BinsOfHighFrequenciesAreCutOff) {
  FeatureKeys keys;
  keys.kind = "spectrogram";
  EXPECT_EQ(keys.width(), 257);
  const auto all = made_of(keys.options());
  keys.num_bins = 96;
  EXPECT_EQ(keys.width(), 96);
  const auto some = made_of(keys.options());
  ASSERT_EQ(some.size() / 96, all.size() / 257);
  for (size_t i = 0; i < some.size(); ++i) {
    ASSERT_EQ(some[i], all[i / 96 * 257 + i % 96]) << i;
  }
}

TEST(FeatureKeys, EachConflictNamesItsKeys) {
  const std::vector<std::pair<std::string, std::function<void(FeatureKeys&)>>> wrong{
      {"features.window_seconds", [](auto& k) { k.window_seconds = 1e-6; }},
      {"features.hop_seconds", [](auto& k) { k.hop_seconds = 1e-6; }},
      {"features.fft_size", [](auto& k) { k.fft_size = 256; }},
      {"features.fft_size", [](auto& k) { k.fft_size = 513; }},
      {"features.num_bins", [](auto& k) { k.kind = "spectrogram", k.num_bins = 258; }},
      {"features.high_hz", [](auto& k) { k.high_hz = 8001; }},
      {"features.low_hz", [](auto& k) { k.low_hz = 4000, k.high_hz = 4000; }},
      {"features.low_hz", [](auto& k) { k.high_hz = -8000; }},
      {"features.num_coefficients", [](auto& k) { k.kind = "mfcc", k.num_coefficients = 81; }},
      {"features.use_energy", [](auto& k) { k.kind = "mfcc", k.use_energy = true; }},
      {"features.mean", [](auto& k) { k.normalise = "fixed", k.std = {1}; }},
      {"features.std",
       [](auto& k) {
         k.normalise = "fixed", k.mean = {0}, k.std = {1, 2};
       }},
  };
  for (const auto& [key, change] : wrong) {
    FeatureKeys keys;
    change(keys);
    const auto conflicts = feature_conflicts(keys, "features");
    ASSERT_FALSE(conflicts.empty()) << key;
    EXPECT_EQ(conflicts.front().keys.front(), key);
    EXPECT_FALSE(conflicts.front().hint.empty()) << key;
    EXPECT_THROW(keys.options(), std::invalid_argument) << key;
  }
}

TEST(FeatureKeys, SoundKeysHaveNoConflict) {
  FeatureKeys keys;
  EXPECT_TRUE(feature_conflicts(keys, "features").empty());
  keys.normalise = "fixed";
  keys.mean = {-5};
  keys.std = std::vector<double>(80, 3);
  EXPECT_TRUE(feature_conflicts(keys, "features").empty());
  keys.kind = "spectrogram";  // whose width is another one
  EXPECT_FALSE(feature_conflicts(keys, "features").empty());
  keys.high_hz = 1e6;  // that a spectrogram does not read
  keys.std = {3};
  EXPECT_TRUE(feature_conflicts(keys, "features").empty());
}

}  // namespace
}  // namespace stretto::audio
