// libFuzzer target: any bytes as the file of a sound. It is decoded, or Error is thrown; nothing
// else may come out, and no more than the header says.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "audio/audio_file.h"
#include "base/error.h"

namespace {

using namespace stretto;

constexpr int64_t kMostFrames = 100'000;  // more would only take longer

void require(bool fact) {
  if (!fact) std::abort();
}

void read_part(audio::AudioReader& reader, int64_t begin) {
  const audio::AudioRange range{.begin = begin,
                                .end = std::min(reader.info().frames, begin + kMostFrames)};
  const auto samples = reader.read(range);
  const auto size = static_cast<int64_t>(samples.size());
  require(size <= range.size());
  require(size == range.size() || reader.info().format == audio::AudioFormat::kMp3);
  require(std::all_of(samples.begin(), samples.end(),
                      [](float sample) { return std::isfinite(sample); }));
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
