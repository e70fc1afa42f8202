// Prints what the audio room makes of a sound, for check_with_librosa.py:
//   features_tool FILE samples RATE     its samples, at this rate, one a line
//   features_tool FILE PRESET           a line of features for each frame
//   features_tool FILE first_phases SEED   those that Griffin-Lim begins with: a line of shares of
//   a
//                                          turn for each frame of its magnitudes
//   features_tool FILE griffin_lim N MOMENTUM SEED   the spectral convergence of N iterations, in
//                                                    dB, and then the samples, one a line
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "audio/audio_file.h"
#include "audio/features.h"
#include "audio/griffin_lim.h"
#include "audio/normalise.h"
#include "base/random_streams.h"

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
  audio::FeatureOptions nemo = audio::librosa_mel(rate);
  nemo.frame_samples = rate / 50;
  nemo.hop_samples = rate / 100;
  nemo.fft_size = 1024;
  nemo.preemphasis = 0.97;
  nemo.compression = audio::Compression::kLogOfSum;
  nemo.floor = 1e-6;
  nemo.mel->num_mels = 64;
  nemo.mel->scale = audio::MelScale::kHtk;
  audio::FeatureOptions kaldi_powers = audio::kaldi_fbank(rate);
  kaldi_powers.mel->num_mels = 80;
  const std::map<std::string, audio::FeatureOptions> presets{
      {"librosa_preemphasis", nemo},
      {"librosa_per_feature", nemo},
      {"librosa_global", nemo},
      {"kaldi_fbank_80", kaldi_powers},
      {"librosa_mel", audio::librosa_mel(rate)},
      {"librosa_mfcc", audio::librosa_mfcc(rate)},
      {"librosa_reflect", whisper},
      {"kaldi_fbank", audio::kaldi_fbank(rate)},
      {"kaldi_fbank_both_ends", both_ends},
      {"kaldi_mfcc", audio::kaldi_mfcc(rate)}};
  auto features = audio::FeatureExtractor(presets.at(name))(audio::read_audio(file));
  if (name == "librosa_per_feature") audio::normalise(features, {.is_unbiased = true});
  if (name == "librosa_global") audio::normalise(features, {.over = audio::NormaliseOver::kAll});
  for (int64_t f = 0; f < features.num_frames(); ++f) {
    for (const float value : features.frame(f)) std::printf("%.9g ", static_cast<double>(value));
    std::printf("\n");
  }
  return 0;
}

audio::FeatureOptions magnitudes_at(int64_t rate) {
  audio::FeatureOptions options = audio::librosa_mel(rate);
  options.frame_samples = options.fft_size = 1024;
  options.hop_samples = 256;
  options.mel.reset();
  options.power = 1;
  return options;
}

int print_first_phases(const std::string& file, const std::string& seed) {
  const auto options = magnitudes_at(audio::audio_info(file).rate);
  const auto magnitudes = audio::FeatureExtractor(options)(audio::read_audio(file));
  RandomStream random(mix64(std::stoull(seed), streams::kFirstPhases));  // as griffin_lim() draws
  for (int64_t f = 0; f < magnitudes.num_frames(); ++f) {
    for (int64_t bin = 0; bin < magnitudes.width; ++bin) std::printf("%.9g ", random.uniform());
    std::printf("\n");
  }
  return 0;
}

int print_griffin_lim(const std::string& file, const std::string& iterations,
                      const std::string& momentum, const std::string& seed) {
  const auto options = magnitudes_at(audio::audio_info(file).rate);
  const auto magnitudes = audio::FeatureExtractor(options)(audio::read_audio(file));
  const auto sound = audio::griffin_lim(magnitudes, options,
                                        {.griffin_lim_iterations = std::stoll(iterations),
                                         .griffin_lim_momentum = std::stod(momentum)},
                                        std::stoull(seed));
  std::printf("%.9g\n", audio::spectral_convergence(sound, magnitudes, options));
  for (const float sample : sound) std::printf("%.9g\n", static_cast<double>(sample));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 3 && words[1] == "samples") return print_samples(words[0], words[2]);
    if (words.size() == 3 && words[1] == "first_phases")
      return print_first_phases(words[0], words[2]);
    if (words.size() == 5) return print_griffin_lim(words[0], words[2], words[3], words[4]);
    if (words.size() == 2) return print_features(words[0], words[1]);
    std::cerr << "usage: features_tool FILE samples RATE | FILE PRESET | FILE first_phases SEED | "
                 "FILE griffin_lim N MOMENTUM SEED\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
  }
  return 2;
}
