#include "families/speech_recognition/engine/speech_scores.h"

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/log_silence.h"
#include "base/text.h"
#include "data/speech/speech_batches.h"
#include "data/speech/transcripts.h"
#include "families/speech_recognition/engine/speech_frames.h"
#include "families/speech_recognition/speech_recognition_display.h"
#include "models/speech/speech_model_options.h"
#include "text/target_text.h"

namespace stretto::tasks {
namespace {

using experiment::SpeechRecognitionOptions;

data::Transcripts labels_of_set(const data::SpeechSet& set, const text::TargetOptions& options,
                                const data::Labels& labels) {
  const text::TargetText rules(options);
  data::Transcripts made;
  for (int64_t sample = 0; sample < set.size(); ++sample) {
    std::string name = rules.normalised(set.text(sample));
    if (name.empty()) {
      ++made.empty;
      continue;
    }
    made.samples.ids.push_back(sample);
    made.samples.seconds.push_back(set.seconds(sample));
    made.samples.targets.append({labels.number_of(name, set.place(sample))});
    made.texts.push_back(std::move(name));
  }
  return made;
}

// What a sound of this length comes to behind the model at the fastest speed of training.
int64_t fewest_rows(const SpeechRecognitionOptions& own, const audio::SoundFeatures& sounds,
                    double seconds) {
  const auto samples = std::llround(seconds * static_cast<double>(sounds.rate()));
  return models::output_length(own.model, sounds.fewest_frames(samples));
}

std::shared_ptr<data::BatchSource> utterance_batches_of(data::UtteranceSamples samples,
                                                        const SpeechRecognitionOptions& own,
                                                        const SpokenSetAsked& asked) {
  const bool trains = asked.is_training;
  const double bound =
      trains || own.eval.batch_seconds <= 0 ? own.data.batch_seconds : own.eval.batch_seconds;
  return data::make_utterance_batches(
      std::move(samples), {.batch_seconds = bound,
                           .max_samples = own.data.max_samples,
                           .bucket_seconds = trains ? own.data.bucket_seconds : 0,
                           .shuffle = trains ? data::Shuffle::kEachEpoch : data::Shuffle::kNo,
                           .seed = asked.seed});
}

void fill_errors(const TranscriptErrors& errors, std::span<double> row) {
  const auto fill = [&](int64_t first, const metrics::EditCounts& counts) {
    const std::array<int64_t, 4> numbers{counts.hits, counts.substitutions, counts.deletions,
                                         counts.insertions};
    for (size_t i = 0; i < numbers.size(); ++i) {
      row[static_cast<size_t>(first) + i] = static_cast<double>(numbers[i]);
    }
  };
  fill(kWordHits, errors.words);
  fill(kCharacterHits, errors.characters);
}

metrics::EditCounts summed_errors(const train::ScoreTable& table, int64_t first) {
  const auto sum = [&](int64_t column) { return std::llround(table.sum(first + column)); };
  return {.hits = sum(0), .substitutions = sum(1), .deletions = sum(2), .insertions = sum(3)};
}

// Fills the rows of a batch.
class BatchScores {
 public:
  BatchScores(const SpeechReader::Heard& heard, const SpokenSet& spoken,
              const SpeechRecognitionOptions& own, SpeechEvaluation& found)
      : heard_(heard), spoken_(spoken), own_(own), found_(found) {
    losses_ = heard.losses.to(at::kDouble).contiguous();
    possible_ = heard.possible.to(at::kDouble).contiguous();
    if (own.has_label()) probabilities_ = heard.label_logits.to(at::kDouble).softmax(1);
  }

  /// @param place   of the utterance among those that were heard
  void fill(int64_t place, int64_t sample, std::span<const int64_t> target,
            train::ScoreTable& table) const {
    const auto row = table.row(sample);
    const double possible = possible_.const_data_ptr<double>()[place];
    row[kUtteranceRead] = 1;
    row[kUtterancePossible] = possible;
    row[kUtteranceLoss] = possible * losses_.const_data_ptr<double>()[place];
    row[kUtteranceUnits] =
        possible * (own_.is_per_utterance() ? 1 : static_cast<double>(target.size()));
    row[kUtteranceOverflowed] = heard_.is_finite[static_cast<size_t>(place)] != 0 ? 0 : 1;
    if (own_.has_label()) {
      fill_label(place, target.front(), row);
      return;
    }
    const auto& text = heard_.transcripts[static_cast<size_t>(place)].front().text;
    const auto at = static_cast<size_t>(sample);
    fill_errors(transcript_errors(spoken_.references[at], text, own_.eval.normalize), row);
    found_.texts[at] = text;
  }

 private:
  void fill_label(int64_t place, int64_t label, std::span<double> row) const {
    const auto [highest, guess] = probabilities_[place].max(0);
    row[kUtteranceGuess] = static_cast<double>(guess.item<int64_t>());
    row[kUtteranceProbability] = highest.item<double>();
    row[kUtteranceRight] = guess.item<int64_t>() == label ? 1 : 0;
  }

  const SpeechReader::Heard& heard_;
  const SpokenSet& spoken_;
  const SpeechRecognitionOptions& own_;
  SpeechEvaluation& found_;
  at::Tensor losses_, possible_, probabilities_;
};

}  // namespace

SpokenSet open_spoken_set(const SpeechRecognitionOptions& own, const SpeechUnits& units,
                          const audio::SoundFeatures& sounds, const SpokenSetAsked& asked) {
  std::optional<log::Silence> silence;
  if (!asked.tells) silence.emplace();
  SpokenSet spoken;
  spoken.set = data::open_speech(own.data, asked.key, asked.paths);
  const auto& set = *spoken.set;
  auto made = own.has_label()
                  ? labels_of_set(set, own.tokenizer, *units.labels)
                  : data::encode_transcripts(set, own.tokenizer, *units.tokenizer, asked.threads);
  if (asked.is_training && !own.has_label()) {
    data::drop_impossible(made, [&](double seconds) { return fewest_rows(own, sounds, seconds); });
  }
  if (own.writes_phonemes()) {
    const text::TargetText rules(own.tokenizer);
    for (size_t i = 0; i < made.texts.size(); ++i) {
      made.texts[i] = rules.target(set.text(made.samples.ids[i]));
    }
  }
  spoken.remarks = made.remarks(set);
  if (made.samples.ids.empty()) {
    throw Error(ExitCode::kBadData, asked.key + ": no utterance can be used",
                spoken.remarks.empty() ? "name sounds with texts" : join(spoken.remarks, "; "));
  }
  spoken.references.resize(static_cast<size_t>(set.size()));
  for (size_t i = 0; i < made.samples.ids.size(); ++i) {
    spoken.references[static_cast<size_t>(made.samples.ids[i])] = std::move(made.texts[i]);
    spoken.seconds += made.samples.seconds[i];
  }
  spoken.used = made.samples.ids;
  spoken.batches = utterance_batches_of(std::move(made.samples), own, asked);
  return spoken;
}

SpeechEvaluation evaluate_spoken_set(const SpeechReader& reader, const SpokenSet& spoken,
                                     const audio::SoundFeatures& sounds,
                                     const SpeechRecognitionOptions& own,
                                     train::EvaluationSetup setup) {
  const int64_t size = spoken.set->size();
  SpeechEvaluation found{.table = train::ScoreTable(size, kNumUtteranceNumbers)};
  found.texts.resize(static_cast<size_t>(size));
  const FrameMaker maker{.set = *spoken.set, .sounds = sounds, .own = own};
  setup.prepare = [&](data::Batch batch) {
    return prepare_test_utterances(std::move(batch), maker);
  };
  const auto score = [&](int64_t /*part*/, std::span<const train::Prepared> read,
                         train::ScoreTable& table) {
    const train::Prepared& prepared = read.front();
    const data::Batch& batch = prepared;
    const auto heard = reader.hear(prepared.rows(kFrameRows), &prepared.rows(kTargetRows));
    const BatchScores scores(heard, spoken, own, found);
    const auto& lengths = batch.column<int64_t>(data::kUtteranceLength).values;
    for (int64_t i = 0, place = 0; i < batch.num_sequences(); ++i) {
      const auto at = static_cast<size_t>(i);
      if (lengths[at] < 0) continue;
      scores.fill(place++, batch.sample_ids[at],
                  batch.column<int64_t>(data::kUtteranceTarget).sequence(i), table);
    }
  };
  found.table =
      train::evaluate(train::parts_of(*spoken.batches), std::move(found.table), setup, score);
  train::merge_answers(setup.group, found.texts);
  return found;
}

std::vector<train::Score> scores_of_speech(const SpeechEvaluation& evaluation, bool has_label) {
  const auto& table = evaluation.table;
  const double units = std::max(1.0, table.sum(kUtteranceUnits));
  std::vector<train::Score> scores{
      {.name = speech_score::kLoss, .value = table.sum(kUtteranceLoss) / units}};
  if (has_label) {
    const double read = std::max(1.0, table.sum(kUtteranceRead));
    scores.push_back({.name = speech_score::kAccuracy, .value = table.sum(kUtteranceRight) / read});
    return scores;
  }
  scores.push_back(
      {.name = speech_score::kWer, .value = error_rate(summed_errors(table, kWordHits))});
  scores.push_back(
      {.name = speech_score::kCer, .value = error_rate(summed_errors(table, kCharacterHits))});
  return scores;
}

SpeechFaults faults_of(const SpeechEvaluation& evaluation, const SpokenSet& spoken) {
  const int64_t read = std::llround(evaluation.table.sum(kUtteranceRead));
  const int64_t possible = std::llround(evaluation.table.sum(kUtterancePossible));
  return {.unread = std::ssize(spoken.used) - read, .too_short = read - possible};
}

UtteranceResult result_of(const SpeechEvaluation& evaluation, const SpokenSet& spoken,
                          int64_t sample, const data::Labels* labels) {
  const auto row = evaluation.table.row(sample);
  const auto at = static_cast<size_t>(sample);
  UtteranceResult result;
  result.id = spoken.set->id(sample);
  result.place = spoken.set->place(sample);
  result.seconds = spoken.set->seconds(sample);
  result.reference = spoken.references[at];
  result.is_read = row[kUtteranceRead] != 0;
  const bool has_loss = row[kUtterancePossible] != 0;
  result.loss = has_loss ? row[kUtteranceLoss] : std::numeric_limits<double>::quiet_NaN();
  if (labels == nullptr) {
    result.hypothesis = evaluation.texts[at];
  } else if (result.is_read) {
    result.hypothesis = labels->name(static_cast<int64_t>(row[kUtteranceGuess]));
  }
  return result;
}

}  // namespace stretto::tasks
