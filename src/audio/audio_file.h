#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "audio/audio_bytes.h"

/// Sounds in files: WAV (8 to 32 bits, float), AIFF, FLAC, Ogg (Vorbis, Opus) and MP3, by
/// libsndfile.
namespace stretto::audio {

enum class AudioFormat : uint8_t { kWav, kAiff, kFlac, kOgg, kMp3 };

/// "WAV", "FLAC", …
const char* name_of(AudioFormat format);

/// Upper bounds of the number of channels and of the sampling rate in Hz.
inline constexpr int64_t kMaxChannels = 64, kMaxRate = 768'000;
/// The most seconds that are decoded at once, unless a call says otherwise.
inline constexpr double kMaxSeconds = 3600;

/// What the header of a file says.
struct AudioInfo {
  AudioFormat format = AudioFormat::kWav;
  int64_t rate = 0;  ///< samples of a channel in a second
  int64_t channels = 0;
  int64_t frames = 0;  ///< samples of each channel; of MP3 an estimate

  double seconds() const { return static_cast<double>(frames) / static_cast<double>(rate); }
};

/// Frames [begin, end) of a file, at its own rate.
struct AudioRange {
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
};

/// The range that begins `offset` seconds into a sound and lasts `duration` seconds; 0: to its end.
/// An end that is up to 50 ms behind that of the sound is moved there, since manifests round.
/// Throws Error(kBadData) for a range that is empty or not within the sound.
/// @param name  of the file, for the message
AudioRange range_within(const AudioInfo& info, double offset, double duration,
                        const std::string& name);

/// A file whose sound is decoded. Not for several threads at once.
class AudioReader {
 public:
  /// Reads the header. The kind of a file is what its first bytes say, whatever its name is.
  /// Throws Error(kBadData), with the name, for a file that is empty, of another kind, cut off (a
  /// WAV file shorter than its header says), or above a bound.
  explicit AudioReader(AudioBytes bytes);
  explicit AudioReader(const std::filesystem::path& path) : AudioReader(AudioBytes(path)) {}
  ~AudioReader();
  AudioReader(AudioReader&&) noexcept;
  AudioReader& operator=(AudioReader&&) noexcept;

  const AudioInfo& info() const { return info_; }
  const std::string& name() const;
  AudioRange all() const { return {.begin = 0, .end = info_.frames}; }

  /// Decodes a range to one channel, the mean of all: [range.size()], in [-1, 1). Files of floats
  /// may exceed these bounds.
  /// Memory is that of the result and one block.
  /// Throws Error(kBadData) for a file that is damaged or ends early (an MP3 may), for a sample
  /// that is no finite number, and for a range longer than `max_seconds`.
  std::vector<float> read(const AudioRange& range, double max_seconds = kMaxSeconds);

 private:
  struct File;
  std::unique_ptr<File> file_;
  AudioInfo info_;
};

/// Header facts, without decoding.
AudioInfo audio_info(const std::filesystem::path& path);

/// What to read of a file.
struct AudioRequest {
  int64_t rate = 0;     ///< of the result; 0: that of the file
  double offset = 0;    ///< in seconds
  double duration = 0;  ///< in seconds; 0: to the end
  double max_seconds = kMaxSeconds;
};

/// Decodes a file, or a part of one, to one channel at the requested rate (audio/resample.h).
/// Throws as AudioReader and range_within() do.
std::vector<float> read_audio(const std::filesystem::path& path, const AudioRequest& request = {});

}  // namespace stretto::audio
