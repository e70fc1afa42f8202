// Features of sounds, and sounds of features, on one core: benchmarks/audio_beside.py compares.
//
//     audio_bench [--work=kaldi_fbank|librosa_mel|tacotron_mel|griffin_lim] [--seconds=N]
//     [--rate=N] [--passes=N] [--file=WAV]
//
// kaldi_fbank: 80 bands of 25 ms, without dither. librosa_mel: log-mel of 80 bands, 25 ms of a
// Hann window. tacotron_mel: 80 bands of 1,024 samples, every 256. griffin_lim: 32 iterations on
// magnitudes of 1,024 samples, every 256. The sound is noise of so many seconds, or a file's.
// Prints `UPD pass seconds-of-sound 0` after each pass, and at the end what was used.
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "audio/audio_file.h"
#include "audio/features.h"
#include "audio/frame_loops.h"
#include "audio/griffin_lim.h"
#include "base/random.h"
#include "benchmarks/bench.h"

namespace stretto::audio {
namespace {

struct BenchSettings : benchmarks::CommonSettings {
  std::string work = "kaldi_fbank", file;
  int64_t seconds = 60, rate = 16000, passes = 5;

  bool take(std::string_view argument) {
    if (const auto value = benchmarks::value_of(argument, "--work")) {
      work = *value;
      return true;
    }
    if (const auto value = benchmarks::value_of(argument, "--file")) {
      file = *value;
      return true;
    }
    return benchmarks::take_number(argument, "--seconds", seconds) ||
           benchmarks::take_number(argument, "--rate", rate) ||
           benchmarks::take_number(argument, "--passes", passes);
  }
};

FeatureOptions tacotron(int64_t rate) {
  FeatureOptions options = librosa_mel(rate);
  options.frame_samples = options.fft_size = 1024;
  options.hop_samples = 256;
  options.power = 1;
  options.mel->num_mels = 80;
  options.compression = Compression::kLogOfMax;
  options.floor = 1e-5;
  return options;
}

std::map<std::string, FeatureOptions> works(int64_t rate) {
  FeatureOptions kaldi = kaldi_fbank(rate);
  kaldi.mel->num_mels = 80;
  FeatureOptions librosa = librosa_mel(rate);
  librosa.frame_samples = kaldi.frame_samples;
  librosa.hop_samples = kaldi.hop_samples;
  librosa.fft_size = kaldi.fft_size;
  librosa.mel->num_mels = 80;
  librosa.compression = Compression::kLogOfMax;
  FeatureOptions magnitudes = tacotron(rate);
  magnitudes.mel.reset();
  magnitudes.compression = Compression::kNone;
  return {{"kaldi_fbank", kaldi},
          {"librosa_mel", librosa},
          {"tacotron_mel", tacotron(rate)},
          {"griffin_lim", magnitudes}};
}

std::vector<float> sound_of(const BenchSettings& settings) {
  if (!settings.file.empty()) return read_audio(settings.file, {.rate = settings.rate});
  RandomStream random(1);
  std::vector<float> sound;
  for (int64_t i = 0; i < settings.seconds * settings.rate; ++i) {
    sound.push_back(static_cast<float>(0.1 * random.normal()));
  }
  return sound;
}

int measure(const BenchSettings& settings) {
  const auto all = works(settings.rate);
  const auto found = all.find(settings.work);
  if (found == all.end()) {
    std::fprintf(stderr, "error: there is no work %s\n", settings.work.c_str());
    return 2;
  }
  const auto sound = sound_of(settings);
  const FeatureExtractor extractor(found->second);
  const Features magnitudes = extractor(sound);
  const double seconds = static_cast<double>(sound.size()) / static_cast<double>(settings.rate);
  double sum = 0;
  for (int64_t pass = 1; pass <= settings.passes; ++pass) {
    if (settings.work == "griffin_lim") {
      sum += griffin_lim(magnitudes, found->second, {.griffin_lim_iterations = 32}, 1)[100];
    } else {
      sum += extractor(sound).values.front();
    }
    std::printf("UPD %ld %.6g 0\n", static_cast<long>(pass), seconds);
    std::fflush(stdout);
  }
  std::printf("END {\"loops\": \"%s\", \"sum\": %.6g}\n", frame_loops().name, sum);
  return 0;
}

}  // namespace
}  // namespace stretto::audio

int main(int argc, char** argv) {
  using namespace stretto;
  return audio::measure(benchmarks::read_settings<audio::BenchSettings>(
      argc, argv,
      "audio_bench [--work=kaldi_fbank|librosa_mel|tacotron_mel|griffin_lim] [--seconds=N] "
      "[--rate=N] [--passes=N] [--file=WAV]"));
}
