#include "audio/griffin_lim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "audio/sound_features.h"
#include "base/error.h"
#include "tests/audio/sounds.h"

namespace stretto::audio {
namespace {

FeatureKeys magnitudes_of_8_khz() {
  FeatureKeys keys;
  keys.kind = "spectrogram";
  keys.rate = 8000;
  keys.window_seconds = 0.032;
  keys.hop_seconds = 0.008;
  keys.power = 1;
  keys.preemphasis = 0;
  keys.compression = "none";
  keys.normalise = "none";
  return keys;
}

/// Three tones that come and go.
std::vector<float> chord() {
  auto sound = test::tone(300, 8000, 6400);
  const auto second = test::tone(470, 8000, 6400), third = test::tone(1210, 8000, 6400);
  for (size_t i = 0; i < sound.size(); ++i) {
    const auto at = static_cast<double>(i);
    sound[i] =
        static_cast<float>(0.4 * (sound[i] * std::sin(at / 900) + second[i] * std::cos(at / 700) +
                                  third[i] * std::sin(at / 1500)));
  }
  return sound;
}

TEST(GriffinLim, FindsASoundOfTheMagnitudes) {
  const FeatureKeys keys = magnitudes_of_8_khz();
  const Features wanted = SoundFeatures(keys)(chord());
  const auto found = griffin_lim(wanted, keys.options(), {}, 1);
  EXPECT_EQ(found.size(), 6400u);
  EXPECT_LT(spectral_convergence(found, wanted, keys.options()), -15);
}

TEST(GriffinLim, MoreIterationsAndMomentumComeNearer) {
  const FeatureKeys keys = magnitudes_of_8_khz();
  const Features wanted = SoundFeatures(keys)(chord());
  const auto level = [&](int64_t iterations, double momentum) {
    const auto found =
        griffin_lim(wanted, keys.options(),
                    {.griffin_lim_iterations = iterations, .griffin_lim_momentum = momentum}, 1);
    return spectral_convergence(found, wanted, keys.options());
  };
  EXPECT_LT(level(10, 0), level(1, 0) - 1);
  EXPECT_LT(level(50, 0), level(10, 0) - 0.5);
  EXPECT_LT(level(50, 0.99), level(50, 0));
}

TEST(GriffinLim, IsAFunctionOfItsSeed) {
  const FeatureKeys keys = magnitudes_of_8_khz();
  const Features wanted = SoundFeatures(keys)(chord());
  const GriffinLimOptions few{.griffin_lim_iterations = 3};
  EXPECT_EQ(griffin_lim(wanted, keys.options(), few, 4),
            griffin_lim(wanted, keys.options(), few, 4));
  EXPECT_NE(griffin_lim(wanted, keys.options(), few, 4),
            griffin_lim(wanted, keys.options(), few, 5));
}

TEST(GriffinLim, KnowsOtherTransformsAndEdges) {
  const std::vector<std::pair<const char*, std::function<void(FeatureKeys&)>>> changes{
      {"without tables", [](auto& k) { k.fft_size = 300; }},
      {"a longer transform", [](auto& k) { k.fft_size = 512; }},
      {"reflection", [](auto& k) { k.padding = "reflect"; }},
      {"frames within the sound", [](auto& k) { k.edges = "snip"; }},
  };
  for (const auto& [what, change] : changes) {
    FeatureKeys keys = magnitudes_of_8_khz();
    change(keys);
    const Features wanted = SoundFeatures(keys)(chord());
    const auto found = griffin_lim(wanted, keys.options(), {}, 1);
    EXPECT_EQ(keys.options().covers_ends ? 6400 : 256 + 64 * (wanted.num_frames() - 1),
              std::ssize(found))
        << what;
    EXPECT_LT(spectral_convergence(found, wanted, keys.options()), -12) << what;
    for (const float sample : found) ASSERT_TRUE(std::isfinite(sample)) << what;
  }
}

TEST(GriffinLim, ConvergenceIsTheDistanceOfMagnitudes) {
  const FeatureKeys keys = magnitudes_of_8_khz();
  const auto sound = chord();
  Features wanted = SoundFeatures(keys)(sound);
  EXPECT_LT(spectral_convergence(sound, wanted, keys.options()), -100);
  for (float& value : wanted.values) value *= 2;
  EXPECT_NEAR(spectral_convergence(sound, wanted, keys.options()), 20 * std::log10(0.5), 1e-3);
}

TEST(GriffinLim, FewFramesMakeFewSamples) {
  const FeatureKeys keys = magnitudes_of_8_khz();
  for (const int64_t frames : {0, 1, 2}) {
    const Features some{.width = 129,
                        .values = std::vector<float>(static_cast<size_t>(129 * frames), 0.1F)};
    EXPECT_EQ(std::ssize(griffin_lim(some, keys.options(), {}, 1)),
              64 * std::max<int64_t>(frames - 1, 0));
  }
  EXPECT_THROW(griffin_lim({.width = 128, .values = {}}, keys.options(), {}, 1),
               std::invalid_argument);
  EXPECT_THROW(griffin_lim({.width = 129, .values = {}}, kaldi_fbank(8000), {}, 1),
               std::invalid_argument);
}

TEST(FeatureInverter, GivesMagnitudesBack) {
  FeatureKeys keys = magnitudes_of_8_khz();
  const Features wanted = SoundFeatures(keys)(chord());
  const std::vector<std::function<void(FeatureKeys&)>> changes{
      [](auto& k) { k.compression = "log", k.floor = 1e-9; },
      [](auto& k) { k.compression = "log_sum", k.floor = 1e-3; },
      [](auto& k) { k.compression = "decibel", k.decibel_range = 200; },
      [](auto& k) { k.power = 2; },
      [](auto& k) {
        k.compression = "log", k.floor = 1e-9, k.normalise = "fixed", k.mean = {-4}, k.std = {3};
      },
  };
  for (const auto& change : changes) {
    FeatureKeys compressed = keys;
    change(compressed);
    const Features got =
        FeatureInverter(compressed, {}).magnitudes(SoundFeatures(compressed)(chord()));
    ASSERT_EQ(got.values.size(), wanted.values.size());
    for (size_t i = 0; i < got.values.size(); ++i) {
      ASSERT_NEAR(got.values[i], wanted.values[i], 1e-3 * (1 + wanted.values[i]));
    }
  }
}

TEST(FeatureInverter, ASpectrumExplainsTheMelBands) {
  FeatureKeys keys = magnitudes_of_8_khz();
  keys.kind = "log_mel";
  keys.num_mels = 40;
  keys.compression = "log";
  keys.floor = 1e-5;
  const Features mels = SoundFeatures(keys)(chord());
  const Features magnitudes = FeatureInverter(keys, {}).magnitudes(mels);
  ASSERT_EQ(magnitudes.num_frames(), mels.num_frames());
  const MelFilters filters(*keys.options().mel, 8000, 256);
  std::vector<float> bands(40);
  double distance = 0;
  for (int64_t f = 0; f < mels.num_frames(); ++f) {
    filters.apply(magnitudes.frame(f), bands);
    for (size_t m = 0; m < bands.size(); ++m) {
      distance += std::abs(std::log(std::max(bands[m], 1e-5F)) - mels.frame(f)[m]);
    }
  }
  EXPECT_LT(distance / static_cast<double>(mels.values.size()), 0.1);
}

TEST(FeatureInverter, AToneComesBackFromMelBands) {
  FeatureKeys keys = magnitudes_of_8_khz();
  keys.kind = "log_mel";
  keys.compression = "log";
  keys.floor = 1e-5;
  keys.preemphasis = 0.9;
  const SoundFeatures sounds(keys);
  const auto sound = test::tone(700, 8000, 8000);
  const auto got = FeatureInverter(keys, {})(sounds(sound));
  ASSERT_EQ(got.size(), 8000u);
  double squares = 0;
  int64_t passes = 0;
  for (size_t i = 2000; i < 6000; ++i) {
    squares += static_cast<double>(got[i]) * got[i] / 4000;
    passes += got[i - 1] < 0 && got[i] >= 0 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(passes), 350, 30);
  EXPECT_NEAR(std::sqrt(squares), std::sqrt(0.125), 0.15);
}

TEST(FeatureInverter, NumbersThatAreNoneAreSilent) {
  FeatureKeys keys = magnitudes_of_8_khz();
  keys.compression = "log";
  Features odd{.width = 129, .values = std::vector<float>(129 * 5, -20)};
  odd.values[3] = std::numeric_limits<float>::quiet_NaN();
  odd.values[4] = std::numeric_limits<float>::infinity();
  const Features magnitudes = FeatureInverter(keys, {}).magnitudes(odd);
  for (const size_t i : {3, 4}) EXPECT_EQ(magnitudes.values[i], 0) << i;
  for (const float sample : FeatureInverter(keys, {})(odd)) {
    ASSERT_TRUE(std::isfinite(sample));
    ASSERT_LE(std::abs(sample), 1);
  }
}

TEST(FeatureInverter, HugeNumbersAreALoudSound) {
  FeatureKeys keys = magnitudes_of_8_khz();
  keys.compression = "log";
  for (const double power : {1.0, 1.5, 4.0}) {
    const Features huge{.width = 129, .values = std::vector<float>(129 * 9, 1000)};
    const auto sound = FeatureInverter(keys, {.magnitude_power = power})(huge);
    float peak = 0;
    for (const float sample : sound) {
      ASSERT_TRUE(std::isfinite(sample)) << power;
      peak = std::max(peak, std::abs(sample));
    }
    EXPECT_NEAR(peak, 0.999, 1e-3) << power;
  }
}

TEST(FeatureInverter, WhatCannotBeInvertedIsRefused) {
  const std::vector<std::pair<std::string, std::function<void(FeatureKeys&)>>> refused{
      {"features.kind", [](auto& k) { k.kind = "mfcc"; }},
      {"features.dialect", [](auto& k) { k.dialect = "kaldi"; }},
      {"features.num_bins", [](auto& k) { k.num_bins = 96; }},
      {"features.normalise", [](auto& k) { k.normalise = "per_feature"; }},
  };
  for (const auto& [key, change] : refused) {
    FeatureKeys keys = magnitudes_of_8_khz();
    change(keys);
    EXPECT_NE(inversion_obstacle(keys).find(key), std::string::npos) << key;
    EXPECT_THROW(FeatureInverter(keys, {}), Error) << key;
  }
  EXPECT_EQ(inversion_obstacle(magnitudes_of_8_khz()), "");
}

}  // namespace
}  // namespace stretto::audio
