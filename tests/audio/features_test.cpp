#include "audio/features.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tests/audio/plain_features.h"
#include "tests/audio/sounds.h"

namespace stretto::audio {
namespace {

std::vector<float> noise_of(size_t samples) {
  RandomStream random(3);
  std::vector<float> sound;
  for (size_t i = 0; i < samples; ++i)
    sound.push_back(static_cast<float>(random.uniform() - 0.4) / 2);
  return sound;
}

/// Small sizes, so that the plain formulas end soon.
FeatureOptions small(FeatureOptions options) {
  options.rate = 2000;
  options.frame_samples = 50;
  options.hop_samples = 20;
  options.fft_size = 64;
  options.mel->num_mels = 12;
  if (options.num_coefficients > 0) options.num_coefficients = 7;
  return options;
}

void expect_plain(const FeatureOptions& options, size_t samples, const std::string& what) {
  const auto sound = noise_of(samples);
  const FeatureExtractor extractor(options);
  const Features got = extractor(sound);
  const auto wanted = test::plain_features(sound, options);
  ASSERT_EQ(got.num_frames(), static_cast<int64_t>(wanted.size())) << what;
  EXPECT_EQ(got.width, extractor.width()) << what;
  for (int64_t f = 0; f < got.num_frames(); ++f) {
    const auto& row = wanted[static_cast<size_t>(f)];
    ASSERT_EQ(got.frame(f).size(), row.size()) << what;
    for (size_t i = 0; i < row.size(); ++i) {
      EXPECT_NEAR(got.frame(f)[i], row[i], 1e-3 * std::max(1.0, std::abs(row[i])))
          << what << ", frame " << f << ", " << i;
    }
  }
}

using FeatureChange = std::pair<const char*, std::function<void(FeatureOptions&)>>;
const std::vector<FeatureChange>& changes() {
  static const std::vector<FeatureChange> all{
      {"as it is", [](auto&) {}},
      {"frames inside alone", [](auto& o) { o.covers_ends = false; }},
      {"frames that cover the ends", [](auto& o) { o.covers_ends = true; }},
      {"reflection", [](auto& o) { o.padding = Padding::kReflect, o.covers_ends = true; }},
      {"symmetric padding", [](auto& o) { o.padding = Padding::kSymmetric, o.covers_ends = true; }},
      {"pre-emphasis", [](auto& o) { o.preemphasis = 0.97; }},
      {"another window", [](auto& o) { o.window = Window::kHamming; }},
      {"magnitudes", [](auto& o) { o.power = 1; }},
      {"another power", [](auto& o) { o.power = 1.5; }},
      {"the mel scale of HTK", [](auto& o) { o.mel->scale = MelScale::kHtk; }},
      {"a part of the frequencies", [](auto& o) { o.mel->low_hz = 100, o.mel->high_hz = -200; }},
      {"a logarithm with a floor", [](auto& o) { o.compression = Compression::kLogOfMax; }},
      {"a logarithm of a sum",
       [](auto& o) { o.compression = Compression::kLogOfSum, o.floor = 0.1; }},
      {"decibels", [](auto& o) { o.compression = Compression::kDecibel, o.decibel_range = 10; }},
      {"a lifter", [](auto& o) { o.lifter = 10; }},
  };
  return all;
}

TEST(Features, AreThoseOfThePlainFormulas) {
  for (const auto& [what, change] : changes()) {
    for (const auto& [name, preset] :
         std::vector<std::pair<std::string, FeatureOptions>>{{"librosa_mel", librosa_mel(2000)},
                                                             {"librosa_mfcc", librosa_mfcc(2000)},
                                                             {"kaldi_fbank", kaldi_fbank(2000)},
                                                             {"kaldi_mfcc", kaldi_mfcc(2000)}}) {
      FeatureOptions options = small(preset);
      change(options);
      expect_plain(options, 173, name + ", " + what);
    }
  }
}

TEST(Features, ASpectrumNeedsNoFilters) {
  FeatureOptions options = small(librosa_mel(2000));
  options.mel.reset();
  expect_plain(options, 173, "spectrum");
  EXPECT_EQ(FeatureExtractor(options).width(), 33);
}

TEST(Features, SoundsShorterThanAFrameHaveTheirsToo) {
  for (const size_t samples : {1, 2, 10, 31}) {
    for (const Padding padding : {Padding::kZeros, Padding::kReflect, Padding::kSymmetric}) {
      FeatureOptions options = small(librosa_mel(2000));
      options.padding = padding;
      expect_plain(options, samples, "short");
    }
  }
  EXPECT_EQ(FeatureExtractor(small(kaldi_fbank(2000)))(noise_of(49)).num_frames(), 0);
}

TEST(Features, NoSampleMakesNoFrame) {
  for (const auto& options : {librosa_mel(2000), kaldi_mfcc(2000)}) {
    const Features got = FeatureExtractor(small(options))({});
    EXPECT_EQ(got.num_frames(), 0);
    EXPECT_GT(got.width, 0);
  }
}

TEST(Features, SilenceIsFinite) {
  for (const auto& options : {librosa_mfcc(16000), kaldi_fbank(16000), kaldi_mfcc(16000)}) {
    const Features got = FeatureExtractor(options)(std::vector<float>(4000));
    ASSERT_GT(got.num_frames(), 0);
    for (const float value : got.values) ASSERT_TRUE(std::isfinite(value));
  }
}

TEST(Features, APureToneIsInItsOwnFilter) {
  const FeatureExtractor extractor(librosa_mel(16000));
  const Features got = extractor(test::tone(1000, 16000, 16000));
  const auto row = got.frame(got.num_frames() / 2);
  const auto loudest = std::max_element(row.begin(), row.end()) - row.begin();
  // 15 mels are 1 kHz; 128 filters lie evenly on the 45.2 mels up to 8 kHz.
  const double place = 15 / hz_to_mel(8000, MelScale::kSlaney) * 129 - 1;
  EXPECT_NEAR(static_cast<double>(loudest), place, 1);
}

TEST(Features, DitherIsAFunctionOfItsKey) {
  FeatureOptions options = kaldi_fbank(16000);
  options.dither = 1;
  const FeatureExtractor extractor(options);
  const std::vector<float> silence(1600);
  EXPECT_EQ(extractor(silence, 5).values, extractor(silence, 5).values);
  EXPECT_NE(extractor(silence, 5).values, extractor(silence, 6).values);
  // The energy of 400 samples of noise with deviation 1, without its mean: 399.
  options.num_coefficients = 13;
  options.has_energy = true;
  EXPECT_NEAR(FeatureExtractor(options)(silence, 5).frame(0)[0], std::log(399.0), 0.3);
}

TEST(Features, OptionsThatContradictEachOtherAreRefused) {
  const auto refuses = [](const std::function<void(FeatureOptions&)>& change) {
    FeatureOptions options = librosa_mfcc(16000);
    change(options);
    EXPECT_THROW(FeatureExtractor{options}, std::invalid_argument);
  };
  refuses([](auto& o) { o.fft_size = 1024; });
  refuses([](auto& o) { o.fft_size = 2049; });
  refuses([](auto& o) { o.hop_samples = 0; });
  refuses([](auto& o) { o.mel.reset(); });
  refuses([](auto& o) { o.floor = 0; });
  refuses([](auto& o) { o.num_coefficients = 129; });
  refuses([](auto& o) { o.num_coefficients = 0, o.has_energy = true; });
}

}  // namespace
}  // namespace stretto::audio
