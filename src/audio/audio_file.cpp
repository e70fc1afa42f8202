#include "audio/audio_file.h"

#include <sndfile.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "audio/resample.h"
#include "audio/wave_header.h"
#include "base/error.h"
#include "base/text.h"

namespace stretto::audio {
namespace {

constexpr size_t kSniffedBytes = 12;
constexpr int64_t kBlockSamples = 1 << 15;  // of all channels
constexpr double kRoundedSeconds = 0.05;
constexpr const char* kConvertAdvice =
    "convert it, for instance with `ffmpeg -i IN OUT.wav`, or leave it out";

/// The kind of a file by its first bytes; nothing of another one.
std::optional<AudioFormat> sniffed(const AudioBytes& bytes) {
  std::array<char, kSniffedBytes> first{};
  const std::string_view text(first.data(), bytes.read_at(0, first.data(), first.size()));
  const bool is_riff =
      text.starts_with("RIFF") || text.starts_with("RIFX") || text.starts_with("RF64");
  const std::string_view form = text.size() == kSniffedBytes ? text.substr(8) : "";
  if (is_riff && form == "WAVE") return AudioFormat::kWav;
  if (text.starts_with("FORM") && form.starts_with("AIF")) return AudioFormat::kAiff;
  if (text.starts_with("fLaC")) return AudioFormat::kFlac;
  if (text.starts_with("OggS")) return AudioFormat::kOgg;
  if (text.starts_with("ID3")) return AudioFormat::kMp3;
  // The first eleven bits of a frame are ones; layer 0 does not exist.
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (text.size() > 1 && byte(0) == 0xFF && (byte(1) & 0xE0U) == 0xE0 && (byte(1) & 0x06U) != 0) {
    return AudioFormat::kMp3;
  }
  return std::nullopt;
}

[[noreturn]] void refuse(const std::string& name, const std::string& what,
                         const std::string& advice = kConvertAdvice) {
  throw Error(ExitCode::kBadData, name + ": " + what, advice);
}

std::string seconds_text(double seconds) {
  return fixed(seconds, 2) + " s";
}

}  // namespace

const char* name_of(AudioFormat format) {
  constexpr std::array<const char*, 5> kNames{"WAV", "AIFF", "FLAC", "Ogg", "MP3"};
  return kNames.at(static_cast<size_t>(format));
}

/// The file as libsndfile sees it: functions that it calls.
struct AudioReader::File {
  explicit File(AudioBytes all) : bytes(std::move(all)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (sound != nullptr) ::sf_close(sound);
  }

  static sf_count_t length(void* user) {
    return static_cast<sf_count_t>(static_cast<File*>(user)->bytes.size());
  }
  static sf_count_t seek(sf_count_t offset, int whence, void* user) {
    auto* file = static_cast<File*>(user);
    const auto size = static_cast<sf_count_t>(file->bytes.size());
    const sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file->at : size;
    // Offsets of a broken header must not overflow.
    if (offset < -base || offset > size - base) return -1;
    return file->at = base + offset;
  }
  static sf_count_t read(void* buffer, sf_count_t count, void* user) {
    auto* file = static_cast<File*>(user);
    if (count <= 0 || file->failure) return 0;
    try {
      const auto got = static_cast<sf_count_t>(
          file->bytes.read_at(static_cast<uint64_t>(file->at), buffer, static_cast<size_t>(count)));
      file->at += got;
      return got;
    } catch (...) {  // through no frame of C
      file->failure = std::current_exception();
      return 0;
    }
  }
  static sf_count_t write(const void* /*buffer*/, sf_count_t /*count*/, void* /*user*/) {
    return 0;
  }
  static sf_count_t tell(void* user) { return static_cast<File*>(user)->at; }

  AudioInfo open();
  void rethrow() const {
    if (failure) std::rethrow_exception(failure);
  }

  AudioBytes bytes;
  SNDFILE* sound = nullptr;
  sf_count_t at = 0;
  std::exception_ptr failure;
};

AudioInfo AudioReader::File::open() {
  const std::string& name = bytes.name();
  if (bytes.size() == 0) refuse(name, "is empty", "leave it out, or put the sound there");
  const auto format = sniffed(bytes);
  if (!format) {
    refuse(name,
           "is no sound that can be read: its first bytes are those of no WAV, AIFF, FLAC, "
           "Ogg or MP3 file");
  }
  if (const auto wave = find_wave_data(bytes); wave && wave->is_cut_off()) {
    refuse(name,
           "is cut off: its header tells of " +
               with_thousands(static_cast<int64_t>(wave->said_bytes)) + " bytes of samples, and " +
               with_thousands(static_cast<int64_t>(wave->bytes_there)) + " are there",
           "fetch or convert it once more, or leave it out");
  }
  SF_VIRTUAL_IO calls{&length, &seek, &read, &write, &tell};
  SF_INFO info{};
  sound = ::sf_open_virtual(&calls, SFM_READ, &info, this);
  rethrow();
  if (sound == nullptr) {
    refuse(name, std::string("is no ") + name_of(*format) +
                     " file that can be read: " + printable(::sf_strerror(nullptr)));
  }
  if (info.samplerate < 1 || info.samplerate > kMaxRate || info.channels < 1 ||
      info.channels > kMaxChannels) {
    refuse(name, "has " + counted(info.channels, "channel") + " at " +
                     std::to_string(info.samplerate) + " Hz; at most " +
                     std::to_string(kMaxChannels) + " channels and " + with_thousands(kMaxRate) +
                     " Hz can be read");
  }
  if (info.frames < 0 || info.frames >= SF_COUNT_MAX / kMaxChannels) {
    refuse(name, "does not say how long it is");
  }
  return {
      .format = *format, .rate = info.samplerate, .channels = info.channels, .frames = info.frames};
}

AudioReader::AudioReader(AudioBytes bytes) : file_(std::make_unique<File>(std::move(bytes))) {
  info_ = file_->open();
}
AudioReader::~AudioReader() = default;
AudioReader::AudioReader(AudioReader&&) noexcept = default;
AudioReader& AudioReader::operator=(AudioReader&&) noexcept = default;

const std::string& AudioReader::name() const {
  return file_->bytes.name();
}

std::vector<float> AudioReader::read(const AudioRange& range, double max_seconds) {
  if (range.begin < 0 || range.end < range.begin || range.end > info_.frames) {
    refuse(name(),
           "has no frames " + with_thousands(range.begin) + " to " + with_thousands(range.end) +
               ": it has " + with_thousands(info_.frames),
           "name a range within the sound");
  }
  const double seconds = static_cast<double>(range.size()) / static_cast<double>(info_.rate);
  if (seconds > max_seconds) {
    refuse(name(),
           "lasts " + human_duration(seconds) + ", and at most " + human_duration(max_seconds) +
               " can be read at once",
           "cut it, or name ranges of it");
  }
  if (range.size() > 0 && ::sf_seek(file_->sound, range.begin, SEEK_SET) != range.begin) {
    file_->rethrow();
    refuse(name(),
           "cannot be read from " +
               seconds_text(static_cast<double>(range.begin) / static_cast<double>(info_.rate)) +
               " on: " + printable(::sf_strerror(file_->sound)));
  }

  std::vector<float> mono;
  // The header may lie: what is there decides how much memory is taken.
  const int64_t block_frames = std::max<int64_t>(kBlockSamples / info_.channels, 1);
  std::vector<float> block(static_cast<size_t>(block_frames * info_.channels));
  const float scale = 1.0F / static_cast<float>(info_.channels);
  while (std::cmp_less(mono.size(), range.size())) {
    const int64_t wanted = std::min(block_frames, range.size() - std::ssize(mono));
    const int64_t got = ::sf_readf_float(file_->sound, block.data(), wanted);
    file_->rethrow();
    if (got <= 0) break;
    for (int64_t i = 0; i < got; ++i) {
      const float* frame = block.data() + i * info_.channels;
      float sum = frame[0];
      for (int64_t c = 1; c < info_.channels; ++c) sum += frame[c];
      const float sample = sum * scale;
      if (!std::isfinite(sample)) {
        refuse(name(), "sample " + with_thousands(range.begin + std::ssize(mono) + 1) +
                           " is not a finite number");
      }
      mono.push_back(sample);
    }
  }
  const bool has_failed = ::sf_error(file_->sound) != SF_ERR_NO_ERROR;
  const bool is_short = std::cmp_less(mono.size(), range.size());
  if (has_failed || (is_short && info_.format != AudioFormat::kMp3)) {
    refuse(name(),
           "ends or is damaged at " +
               seconds_text(static_cast<double>(range.begin + std::ssize(mono)) /
                            static_cast<double>(info_.rate)) +
               ": its header says that it lasts " + seconds_text(info_.seconds()),
           "fetch or convert it once more, or leave it out");
  }
  return mono;
}

AudioRange range_within(const AudioInfo& info, double offset, double duration,
                        const std::string& name) {
  const auto rate = static_cast<double>(info.rate);
  const bool are_numbers = std::isfinite(offset) && std::isfinite(duration);
  if (are_numbers && offset >= 0 && duration >= 0 &&
      offset + duration <= info.seconds() + kRoundedSeconds) {
    const auto begin = std::min<int64_t>(std::llround(offset * rate), info.frames);
    const auto end = duration > 0
                         ? std::min<int64_t>(std::llround((offset + duration) * rate), info.frames)
                         : info.frames;
    if (end > begin || info.frames == 0) return {.begin = begin, .end = end};
  }
  refuse(name,
         "has no " + (duration > 0 ? seconds_text(duration) + " from " : "sound from ") +
             seconds_text(offset) + " on: it lasts " + seconds_text(info.seconds()),
         "correct the offset and the duration, which are seconds");
}

AudioInfo audio_info(const std::filesystem::path& path) {
  return AudioReader(path).info();
}

std::vector<float> read_audio(const std::filesystem::path& path, const AudioRequest& request) {
  AudioReader reader(path);
  const auto& info = reader.info();
  const AudioRange range = range_within(info, request.offset, request.duration, reader.name());
  auto samples = reader.read(range, request.max_seconds);
  if (request.rate == 0 || request.rate == info.rate) return samples;
  return resampled(samples, info.rate, request.rate);
}

}  // namespace stretto::audio
