// libFuzzer target: any bytes as the file of a sound. It is decoded, or Error is thrown; nothing
// else may come out, and no more than the header says. Of what is decoded, features are finite, the
// same in pieces, and a WAV file of it is read back.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "audio/audio_file.h"
#include "audio/feature_stream.h"
#include "audio/sound_features.h"
#include "audio/wave_writer.h"
#include "base/error.h"

namespace {

using namespace stretto;

constexpr int64_t kMostFrames = 100'000;  // more would only take longer
constexpr size_t kMostUsed = 4'000;

void require(bool fact) {
  if (!fact) std::abort();
}

bool are_finite(std::span<const float> numbers) {
  return std::all_of(numbers.begin(), numbers.end(),
                     [](float number) { return std::isfinite(number); });
}

audio::FeatureKeys stream_keys(const char* dialect) {
  audio::FeatureKeys keys;
  keys.dialect = dialect;
  keys.normalise = "none";
  return keys;
}

/// @param piece  samples that the stream gets at a time, above 0
void make_features(std::span<const float> samples, size_t piece) {
  for (const char* dialect : {"librosa", "kaldi"}) {
    static const audio::SoundFeatures librosa(stream_keys("librosa")), kaldi(stream_keys("kaldi"));
    const audio::Features whole = (dialect == std::string_view("kaldi") ? kaldi : librosa)(samples);
    require(are_finite(whole.values));
    audio::FeatureStream stream(stream_keys(dialect));
    std::vector<float> values;
    const auto keep = [&](const audio::Features& some) {
      values.insert(values.end(), some.values.begin(), some.values.end());
    };
    for (size_t at = 0; at < samples.size(); at += piece) {
      keep(stream.push(samples.subspan(at, std::min(piece, samples.size() - at))));
    }
    keep(stream.finish());
    require(values == whole.values);
  }
}

void write_again(std::span<const float> samples, int64_t rate) {
  const std::string bytes = audio::wave_bytes(samples, rate);
  audio::AudioReader reader(audio::AudioBytes(bytes, "again"));
  require(reader.info().rate == rate && reader.info().frames == std::ssize(samples));
  require(audio::wave_bytes(reader.read(reader.all()), rate) == bytes);
}

void read_part(audio::AudioReader& reader, int64_t begin) {
  const audio::AudioRange range{.begin = begin,
                                .end = std::min(reader.info().frames, begin + kMostFrames)};
  const auto samples = reader.read(range);
  const auto size = static_cast<int64_t>(samples.size());
  require(size <= range.size());
  require(size == range.size() || reader.info().format == audio::AudioFormat::kMp3);
  require(are_finite(samples));
  const std::span<const float> some(samples.data(), std::min(samples.size(), kMostUsed));
  make_features(some, 1 + static_cast<size_t>(begin % 997));
  write_again(some, reader.info().rate);
}

}  // namespace

// libsndfile 1.2.0 loses a few kilobytes of each Ogg file that it refuses.
extern "C" const char* __lsan_default_suppressions() {  // NOLINT: the sanitizer's own name
  // The libraries below it keep no frame pointers, so that a stack may end in one of them.
  return "leak:libsndfile\nleak:libvorbis\nleak:libogg\nleak:libopus\nleak:libFLAC\n"
         "leak:libmpg123\nleak:libmp3lame\n";
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    audio::AudioReader reader(
        audio::AudioBytes(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz"));
    const auto& info = reader.info();
    require(info.rate > 0 && info.channels > 0 && info.frames >= 0);
    read_part(reader, 0);
    read_part(reader, info.frames / 2);
  } catch (const Error&) {
  }
  return 0;
}
