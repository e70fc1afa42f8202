#include "families/speech_recognition/engine/spoken_words.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/speech/speech_model_options.h"

namespace stretto::tasks {
namespace {

double in_milliseconds(double seconds) {
  return std::round(1000 * seconds) / 1000;
}

}  // namespace

RowClock::RowClock(const audio::FeatureKeys& features, const models::SpeechModelOptions& model)
    : sounds_(features),
      frames_per_row_(models::frames_per_row(model)),
      hop_seconds_(static_cast<double>(features.hop_samples()) /
                   static_cast<double>(features.rate)) {}

double RowClock::seconds_at(int64_t row) const {
  return std::max(0.0, sounds_.seconds_at(row * frames_per_row_));
}

int64_t RowClock::rows_in(double seconds) const {
  return static_cast<int64_t>(seconds / (hop_seconds_ * static_cast<double>(frames_per_row_)));
}

SpokenWord RowClock::word_of(const ctc::CtcWord& word) const {
  return {
      .text = word.text, .begin = seconds_at(word.begin_frame), .end = seconds_at(word.end_frame)};
}

std::vector<SpokenWord> spoken_words(const Transcript& transcript, const RowClock& clock,
                                     double seconds) {
  std::vector<SpokenWord> words;
  for (const auto& word : transcript.words) {
    if (!transcript.has_times) {
      words.push_back({.text = word.text, .begin = {}, .end = {}});
      continue;
    }
    words.push_back(clock.word_of(word));
    words.back().begin = std::min(*words.back().begin, seconds);
    words.back().end = std::min(*words.back().end, seconds);
  }
  return words;
}

nlohmann::ordered_json json_of_word(const SpokenWord& word) {
  nlohmann::ordered_json json{{"word", word.text}};
  if (word.begin) json["begin"] = in_milliseconds(*word.begin);
  if (word.end) json["end"] = in_milliseconds(*word.end);
  return json;
}

}  // namespace stretto::tasks
