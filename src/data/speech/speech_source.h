#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/bad_samples.h"
#include "data/cache_use.h"
#include "data/data_file.h"
#include "data/speech/clipped_sounds.h"
#include "data/speech/speech_data_options.h"
#include "data/speech/speech_inputs.h"
#include "data/speech/utterance_rows.h"

namespace stretto::data {

/// What is known of an utterance before its sound is decoded.
struct UtteranceFacts {
  uint64_t bytes = 0;              ///< of its file
  uint64_t hash = 0;               ///< XXH3-64 of its file
  int64_t rate = 0, channels = 0;  ///< of its file
  int64_t begin = 0, end = 0;      ///< frames of the file that are the utterance, at its rate

  double seconds() const {
    return rate == 0 ? 0 : static_cast<double>(end - begin) / static_cast<double>(rate);
  }
};

/// A part of an utterance.
struct SoundPart {
  int64_t begin = 0, end = 0;  ///< frames behind its beginning; end 0 = all of it
  bool may_be_silent = false;
};

/// The utterances of one path of `[data]`. Safe to use from several threads.
class SpeechSource {
 public:
  virtual ~SpeechSource() = default;

  virtual int64_t size() const = 0;
  virtual UtteranceFacts facts(int64_t number) const = 0;
  virtual std::string_view text(int64_t number) const = 0;
  virtual std::string_view id(int64_t number) const = 0;
  /// Whether the data have this id; else it is made of the path.
  virtual bool has_own_id(int64_t number) const = 0;
  virtual std::string_view speaker(int64_t number) const = 0;
  /// Where it comes from, for messages and reports: "train.csv:17", or path().
  virtual std::string place(int64_t number) const = 0;
  /// Its sound: the path of a file, or "a.tar: wavs/1.wav".
  virtual std::string path(int64_t number) const = 0;
  /// Its samples, one channel at `rate`; 0 = that of its file. Throws a SampleError where the file
  /// has vanished or changed since the source was opened, and where all samples are one value and
  /// part.may_be_silent does not say that they may be;
  /// Error(kBadData) as audio::AudioReader does; std::logic_error of a packed archive that was
  /// opened without the cache.
  virtual std::vector<float> read_part(int64_t number, int64_t rate,
                                       const SoundPart& part) const = 0;
  std::vector<float> read(int64_t number, int64_t rate) const {
    return read_part(number, rate, {});
  }

  /// Sounds that were clipped, among those that were read so far.
  virtual const ClippedSounds& clipped() const = 0;
  /// Samples that were bad when it was opened.
  virtual const LeftOut& left_out() const = 0;
  /// Why the cache could not be written, where the system is to blame; else empty.
  virtual std::string refusal() const = 0;
};

/// Looks at the utterances of one path, or finds them in the cache as they were looked at. The key
/// has what texts hold, the names, sizes and times of sounds, of an archive its content, and how
/// all is read. Of an archive that is not packed, the bytes stay where they are; those of a packed
/// one are kept in the cache, as data/images/archive_images.h has it.
///
/// Bad samples are those of open_speech() (data/speech/speech_set.h). Throws as BadSamples,
/// ListedFiles, TarReader and the readers of rows do, and Error(kBadData) for a file that changes
/// meanwhile.
///
/// @param threads  that look at sounds
std::shared_ptr<const SpeechSource> open_speech_source(const SpeechInput& input,
                                                       const SpeechDataOptions& options,
                                                       int64_t threads, CacheUse use);

/// The rows of a path that is no folder and no archive of a layout: a manifest, a list, a folder of
/// Kaldi. Throws as their readers.
UtteranceRows read_listed_rows(const SpeechInput& input, const SpeechDataOptions& options,
                               BadSamples& bad);
/// The file of such a path that names the sounds: of Kaldi wav.scp.
std::string sound_list(const SpeechInput& input);
/// The sounds of rows that are regular files, each once.
std::vector<NamedFile> sounds_there(const UtteranceRows& rows);

}  // namespace stretto::data
