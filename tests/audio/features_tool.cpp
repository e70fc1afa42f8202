// Prints what the audio room makes of a sound, for check_with_librosa.py:
//   features_tool FILE samples RATE     its samples, at this rate, one a line
//   features_tool FILE PRESET           a line of features for each frame
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "audio/audio_file.h"
#include "audio/features.h"

namespace {

using namespace stretto;

int print_samples(const std::string& file, const std::string& rate) {
  for (const float sample : audio::read_audio(file, {.rate = std::stoll(rate)})) {
    std::printf("%.9g\n", static_cast<double>(sample));
  }
  return 0;
}

int print_features(const std::string& file, const std::string& name) {
  const int64_t rate = audio::audio_info(file).rate;
  audio::FeatureOptions whisper = audio::librosa_mel(rate);
  whisper.frame_samples = whisper.fft_size = 400;
  whisper.hop_samples = 160;
  whisper.padding = audio::Padding::kReflect;
  whisper.mel->num_mels = 80;
  audio::FeatureOptions both_ends = audio::kaldi_fbank(rate);
  both_ends.covers_ends = true;
  both_ends.mel->num_mels = 80;
  both_ends.mel->high_hz = -400;
  const std::map<std::string, audio::FeatureOptions> presets{
      {"librosa_mel", audio::librosa_mel(rate)},
      {"librosa_mfcc", audio::librosa_mfcc(rate)},
      {"librosa_reflect", whisper},
      {"kaldi_fbank", audio::kaldi_fbank(rate)},
      {"kaldi_fbank_both_ends", both_ends},
      {"kaldi_mfcc", audio::kaldi_mfcc(rate)}};
  const auto features = audio::FeatureExtractor(presets.at(name))(audio::read_audio(file));
  for (int64_t f = 0; f < features.num_frames(); ++f) {
    for (const float value : features.frame(f)) std::printf("%.9g ", static_cast<double>(value));
    std::printf("\n");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 3 && words[1] == "samples") return print_samples(words[0], words[2]);
    if (words.size() == 2) return print_features(words[0], words[1]);
    std::cerr << "usage: features_tool FILE samples RATE | FILE PRESET\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
  }
  return 2;
}
