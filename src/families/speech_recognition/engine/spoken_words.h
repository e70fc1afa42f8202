#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "audio/sound_features.h"
#include "ctc/ctc_search.h"
#include "families/speech_recognition/engine/transcriber.h"
#include "families/speech_recognition/speech_recognition_options.h"

namespace stretto::tasks {

/// A word and when it is spoken.
struct SpokenWord {
  std::string text;
  std::optional<double> begin, end;  ///< seconds from the beginning of the sound; none: not known
};

/// Rows of a model as seconds.
class RowClock {
 public:
  RowClock(const audio::FeatureKeys& features, const models::SpeechModelOptions& model);

  /// The place of a row: the middle of its first frame, in seconds.
  double seconds_at(int64_t row) const;
  /// Rows within so many seconds, rounded down.
  int64_t rows_in(double seconds) const;
  SpokenWord word_of(const ctc::CtcWord& word) const;

 private:
  audio::SoundFeatures sounds_;
  int64_t frames_per_row_;
  double hop_seconds_;
};

/// The words of a transcript. @param seconds  of the sound: no word ends behind it
std::vector<SpokenWord> spoken_words(const Transcript& transcript, const RowClock& clock,
                                     double seconds);

/// {"word": …, "begin": …, "end": …}, with milliseconds; without times where they are not known.
nlohmann::ordered_json json_of_word(const SpokenWord& word);

}  // namespace stretto::tasks
