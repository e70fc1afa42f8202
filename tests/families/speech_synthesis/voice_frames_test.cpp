#include "families/speech_synthesis/voice_frames.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/families/speech_synthesis/small_clips.h"

namespace stretto::experiment {
namespace {

SpeechSynthesisOptions small_options(const std::string& spectrum = "mel") {
  SpeechSynthesisOptions own;
  own.features.rate = testing::kClipRate;
  own.features.window_seconds = 0.032;  // 256 samples
  own.features.hop_seconds = 0.008;     // 64
  own.features.num_mels = 20;
  own.features.high_hz = 0;
  own.model.as<models::Tacotron2Options>().spectrum = spectrum;
  return own;
}

TEST(VoiceFrames, HaveMelBandsInFrontOfMagnitudes) {
  const auto sound = testing::tones_of("abcd");
  const VoiceFrames mel(small_options(), 1), magnitude(small_options("magnitude"), 1),
      both(small_options("both"), 1);
  EXPECT_EQ(mel.parts().width(), 20);
  EXPECT_EQ(magnitude.parts().width(), 129);
  EXPECT_EQ(both.parts().width(), 149);
  const auto frames = both(sound);
  EXPECT_EQ(part_of_frames(frames, 0, 20).values, mel(sound).values);
  EXPECT_EQ(part_of_frames(frames, 20, 129).values, magnitude(sound).values);
  EXPECT_EQ(both.style(sound).values, mel(sound).values);
}

TEST(VoiceFrames, AreThoseOfNvidiasModelByDefault) {
  const SpeechSynthesisOptions own;
  const auto options = own.features.options();
  EXPECT_EQ(options.frame_samples, 1024);
  EXPECT_EQ(options.hop_samples, 256);
  EXPECT_EQ(options.fft_size, 1024);
  EXPECT_EQ(options.power, 1);
  EXPECT_EQ(options.floor, 1e-5);
  EXPECT_EQ(options.padding, audio::Padding::kReflect);
  EXPECT_EQ(frame_parts_of(own).width(), 80);
}

TEST(VoiceFrames, LeaveOutSilenceAtTheEnds) {
  auto own = small_options();
  std::vector<float> padded(4000);
  const auto sound = testing::tones_of("abcd");
  padded.insert(padded.end(), sound.begin(), sound.end());
  padded.resize(padded.size() + 4000);
  const auto whole = VoiceFrames(own, 1)(padded);
  own.features.trim_decibels = 40;
  own.features.trim_margin_seconds = 0;
  const auto trimmed = VoiceFrames(own, 1)(padded);
  const auto alone = VoiceFrames(own, 1)(sound);
  EXPECT_NEAR(static_cast<double>(trimmed.num_frames()), static_cast<double>(alone.num_frames()),
              2);
  EXPECT_GT(whole.num_frames(), trimmed.num_frames() + 100);
}

TEST(VoiceFrames, OfTrainingHaveDitherByEpochAndClip) {
  auto own = small_options();
  const auto sound = testing::tones_of("abcd");
  EXPECT_EQ(VoiceFrames(own, 1).training(sound, 3, 7).values, VoiceFrames(own, 1)(sound).values);
  own.features.dither = 1e-3;
  const VoiceFrames frames(own, 1);
  EXPECT_EQ(frames.training(sound, 3, 7).values, frames.training(sound, 3, 7).values);
  EXPECT_NE(frames.training(sound, 3, 7).values, frames.training(sound, 4, 7).values);
  EXPECT_NE(frames.training(sound, 3, 7).values, frames.training(sound, 3, 8).values);
}

// The loudest frequency of a sound that stays the same, in Hz, by the number of its periods.
double pitch_of(const std::vector<float>& sound) {
  int64_t rises = 0;
  for (size_t i = 1; i < sound.size(); ++i) rises += sound[i - 1] < 0 && sound[i] >= 0 ? 1 : 0;
  return static_cast<double>(rises) * static_cast<double>(testing::kClipRate) /
         static_cast<double>(sound.size());
}

TEST(VoiceFrames, BecomeASoundOfTheSamePitch) {
  const auto sound = testing::tones_of("cccccccc");  // 700 Hz
  for (const char* spectrum : {"mel", "magnitude", "both"}) {
    const auto own = small_options(spectrum);
    const auto back = FrameSounds(own)(VoiceFrames(own, 1)(sound), 1);
    EXPECT_NEAR(static_cast<double>(back.size()), static_cast<double>(sound.size()), 128)
        << spectrum;
    // A mel band there is 130 Hz wide.
    EXPECT_NEAR(pitch_of(back), 700, spectrum == std::string("mel") ? 140 : 40) << spectrum;
  }
}

}  // namespace
}  // namespace stretto::experiment
