#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "audio/audio_bytes.h"
#include "data/bad_samples.h"

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

/// The utterances of one path of `[data]`. Safe to use from several threads.
class SpeechSource {
 public:
  virtual ~SpeechSource() = default;

  virtual int64_t size() const = 0;
  virtual const UtteranceFacts& facts(int64_t number) const = 0;
  virtual std::string_view text(int64_t number) const = 0;
  virtual std::string_view id(int64_t number) const = 0;
  virtual std::string_view speaker(int64_t number) const = 0;
  /// Where it comes from, for messages and reports.
  virtual std::string place(int64_t number) const = 0;
  /// Its sound, for messages.
  virtual std::string path(int64_t number) const = 0;
  /// The bytes of its sound. Throws a SampleError where they have vanished or changed since the
  /// source was opened; std::logic_error of a packed archive that was opened without the cache.
  virtual audio::AudioBytes open(int64_t number) const = 0;

  /// Samples that were bad when it was opened.
  virtual const LeftOut& left_out() const = 0;
  /// Why the cache could not be written, where the system is to blame; else empty.
  virtual std::string refusal() const = 0;
};

}  // namespace stretto::data
