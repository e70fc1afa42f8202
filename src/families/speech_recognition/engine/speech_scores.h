#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "audio/sound_features.h"
#include "data/batch_source.h"
#include "data/speech/speech_set.h"
#include "families/speech_recognition/engine/speech_run.h"
#include "families/speech_recognition/engine/transcriber.h"
#include "families/speech_recognition/speech_recognition_options.h"
#include "families/speech_recognition/transcript_errors.h"
#include "train/evaluation.h"
#include "train/task.h"

namespace stretto::tasks {

/// The utterances of a key with their targets, in batches.
struct SpokenSet {
  std::shared_ptr<const data::SpeechSet> set = {};
  /// [set->size()]: what was said, as scores compare it: phonemes where these are written; the name
  /// of the label, where there are labels. Empty of those that are in no batch.
  std::vector<std::string> references = {};
  std::vector<int64_t> used = {};  ///< numbers of the utterances that are in batches, ascending
  std::shared_ptr<data::BatchSource> batches = {};
  std::vector<std::string> remarks = {};  ///< what was left out of texts, or of the set, in words
  double seconds = 0;                     ///< of those that are used
};

/// What is asked of a set.
struct SpokenSetAsked {
  std::string key;  ///< of the paths: "data.train"
  std::vector<std::string> paths;
  bool is_training = false;  ///< a shuffle each epoch; without what CTC cannot align
  uint64_t seed = 0;
  int64_t threads = 1;
  bool tells = true;  ///< whether this process logs what is odd about them
};

/// Throws as data::open_speech() does, Error(kBadData) for a label that the run does not have, and
/// where no utterance can be used.
SpokenSet open_spoken_set(const experiment::SpeechRecognitionOptions& own, const SpeechUnits& units,
                          const audio::SoundFeatures& sounds, const SpokenSetAsked& asked);

/// The numbers of an utterance, as columns of a table. All are 0 for one that was not read.
enum UtteranceNumber : int64_t {
  kUtteranceRead = 0,     ///< 1 or 0
  kUtteranceLoss,         ///< summed over its labels
  kUtterancePossible,     ///< 1 where there are rows enough for its target
  kUtteranceUnits,        ///< what its loss is divided by: its labels, or 1
  kUtteranceOverflowed,   ///< 1 where some number is infinite or NaN
  kUtteranceGuess,        ///< the most probable label
  kUtteranceProbability,  ///< and its probability
  kUtteranceRight,        ///< 1 where that is its own
  kWordHits,              ///< metrics::EditCounts of words, and of characters
  kWordSubstitutions,
  kWordDeletions,
  kWordInsertions,
  kCharacterHits,
  kCharacterSubstitutions,
  kCharacterDeletions,
  kCharacterInsertions,
  kNumUtteranceNumbers
};

/// What an evaluation found: a row of numbers and the best text of each utterance of a set.
struct SpeechEvaluation {
  train::ScoreTable table;
  std::vector<std::string> texts = {};
};

/// Evaluates a set, whose batches are shared out among processes (train/evaluation.h). Collective.
SpeechEvaluation evaluate_spoken_set(const SpeechReader& reader, const SpokenSet& spoken,
                                     const audio::SoundFeatures& sounds,
                                     const experiment::SpeechRecognitionOptions& own,
                                     train::EvaluationSetup setup);

/// Scores as speech_recognition_scores() lists them, of the utterances that could be read.
std::vector<train::Score> scores_of_speech(const SpeechEvaluation& evaluation, bool has_label);
/// Utterances that could not be read, and those with too few rows for their text, which have no
/// loss.
struct SpeechFaults {
  int64_t unread = 0, too_short = 0;
};
SpeechFaults faults_of(const SpeechEvaluation& evaluation, const SpokenSet& spoken);
/// An utterance in full; `labels` is null where there are texts.
UtteranceResult result_of(const SpeechEvaluation& evaluation, const SpokenSet& spoken,
                          int64_t sample, const data::Labels* labels);

}  // namespace stretto::tasks
