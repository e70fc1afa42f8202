#include "families/speech_recognition/engine/speech_samples.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "audio/wave_writer.h"
#include "base/error.h"
#include "base/text.h"
#include "report/media.h"

namespace stretto::tasks {
namespace {

constexpr int64_t kConfusionRows = 20;
constexpr size_t kWaveBytesOfSample = 2;

int64_t errors_of(std::span<const double> row, bool has_label) {
  if (has_label) return row[kUtteranceRight] != 0 ? 0 : 1;
  return static_cast<int64_t>(row[kWordSubstitutions] + row[kWordDeletions] + row[kWordInsertions]);
}

// Utterances that were read, those with most errors first; of as many errors, of higher loss.
std::vector<int64_t> worst_heard_of(const SpeechEvaluation& evaluation, const SpokenSet& spoken,
                                    bool has_label, int64_t most) {
  std::vector<int64_t> order;
  for (const int64_t sample : spoken.used) {
    if (evaluation.table.row(sample)[kUtteranceRead] != 0) order.push_back(sample);
  }
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
    const auto of_a = evaluation.table.row(a), of_b = evaluation.table.row(b);
    const int64_t errors_a = errors_of(of_a, has_label), errors_b = errors_of(of_b, has_label);
    return errors_a != errors_b ? errors_a > errors_b : of_a[kUtteranceLoss] > of_b[kUtteranceLoss];
  });
  if (std::ssize(order) > most) order.resize(static_cast<size_t>(most));
  return order;
}

// The sound as it is in its file, if a report keeps as much.
void add_sound(const data::SpeechSet& set, int64_t sample, report::MediaSample& media) {
  const auto rate = static_cast<double>(set.rate(sample));
  if (set.seconds(sample) * rate * kWaveBytesOfSample > static_cast<double>(report::kMaxMedia)) {
    media.note += ", too long to be kept here";
    return;
  }
  try {
    media.bytes = audio::wave_bytes(set.read(sample, 0), set.rate(sample));
  } catch (const Error&) {  // it was there when it was scored
    media.note += ", its sound is gone";
  }
}

report::MediaSample heard_sample(const UtteranceResult& result, std::span<const double> row,
                                 bool has_label) {
  report::MediaSample media{.mime = "audio/wav", .bytes = {}, .words = result.reference};
  media.note = result.id + ", " + fixed(result.seconds, 1) + " s";
  media.rows.emplace_back("Heard", result.hypothesis.empty() ? "nothing" : result.hypothesis);
  if (has_label) {
    media.rows.emplace_back("Probability", fixed(row[kUtteranceProbability], 3));
  } else {
    const auto words =
        static_cast<int64_t>(row[kWordHits] + row[kWordSubstitutions] + row[kWordDeletions]);
    media.rows.emplace_back(
        "Errors", std::to_string(errors_of(row, has_label)) + " in " + counted(words, "word"));
  }
  media.rows.emplace_back("Loss", row[kUtterancePossible] != 0
                                      ? fixed(row[kUtteranceLoss], 3)
                                      : "none: the sound is too short for the text");
  return media;
}

report::MatrixSample matrix_of_labels(const SpeechEvaluation& evaluation, const SpokenSet& spoken,
                                      const data::Labels& labels) {
  const auto size = static_cast<size_t>(std::min<int64_t>(labels.size(), report::kMaxMatrix));
  report::MatrixSample matrix{.title = "Confusion matrix",
                              .row_title = "label",
                              .column_title = "predicted",
                              .rows = {},
                              .columns = {},
                              .counts = {}};
  matrix.rows.assign(labels.names().begin(), labels.names().begin() + static_cast<int64_t>(size));
  matrix.columns = matrix.rows;
  matrix.counts.assign(size, std::vector<int64_t>(size));
  if (std::ssize(labels.names()) > static_cast<int64_t>(size)) {
    matrix.title += " of the first " + std::to_string(size) + " labels";
  }
  for (const int64_t sample : spoken.used) {
    const auto row = evaluation.table.row(sample);
    if (row[kUtteranceRead] == 0) continue;
    const auto label =
        static_cast<size_t>(labels.find(spoken.references[static_cast<size_t>(sample)]).value());
    const auto guess = static_cast<size_t>(row[kUtteranceGuess]);
    if (label < size && guess < size) ++matrix.counts[label][guess];
  }
  return matrix;
}

report::RowsSample confused_words(const SpeechEvaluation& evaluation, const SpokenSet& spoken,
                                  const std::string& normalize) {
  Confusions confusions(normalize);
  for (const int64_t sample : spoken.used) {
    const auto at = static_cast<size_t>(sample);
    if (evaluation.table.row(sample)[kUtteranceRead] == 0) continue;
    try {
      confusions.add(spoken.references[at], evaluation.texts[at]);
    } catch (const Error&) {  // too long to be aligned word by word: no reason to end training
    }
  }
  report::RowsSample rows;
  for (const std::string& line : split(confusions.text(), '\n')) {
    const auto columns = split(line, '\t');
    if (columns.size() != 3 || std::ssize(rows.rows) == kConfusionRows) break;
    rows.rows.emplace_back(columns[1] + " → " + columns[2], columns[0]);
  }
  return rows;
}

}  // namespace

std::vector<report::Sample> speech_samples(const SpeechEvaluation& evaluation,
                                           const SpokenSet& spoken,
                                           const experiment::SpeechRecognitionOptions& own,
                                           const SpeechUnits& units, int64_t most) {
  std::vector<report::Sample> samples;
  if (most == 0) return samples;
  const data::Labels* labels = units.labels ? &*units.labels : nullptr;
  if (labels != nullptr) {
    samples.emplace_back(matrix_of_labels(evaluation, spoken, *labels));
  } else if (auto rows = confused_words(evaluation, spoken, own.eval.normalize);
             !rows.rows.empty()) {
    rows.rows.insert(rows.rows.begin(), {"Said → heard", "times"});
    samples.emplace_back(std::move(rows));
  }
  for (const int64_t sample : worst_heard_of(evaluation, spoken, own.has_label(), most)) {
    auto media = heard_sample(result_of(evaluation, spoken, sample, labels),
                              evaluation.table.row(sample), own.has_label());
    add_sound(*spoken.set, sample, media);
    samples.emplace_back(std::move(media));
  }
  return samples;
}

}  // namespace stretto::tasks
