#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/log.h"
#include "base/named_output.h"
#include "base/text.h"
#include "data/speech/speech_files.h"
#include "distributed/agreement.h"
#include "experiment/num_threads.h"
#include "families/speech_recognition/engine/commands.h"
#include "families/speech_recognition/engine/speech_run.h"
#include "families/speech_recognition/engine/speech_scores.h"
#include "families/speech_recognition/requests.h"
#include "families/text/engine/eval_files.h"
#include "tasks/finite_answers.h"
#include "tasks/left_out.h"
#include "tasks/line_work.h"
#include "tasks/load_checkpoints.h"

namespace stretto::tasks {
namespace {

// What was scored, and how many utterances were not.
struct ScoredSpeech {
  std::string checkpoint, set;
  std::vector<train::Score> scores;
  int64_t utterances = 0;
  SpeechFaults faults = {};
  metrics::EditCounts words = {};
  bool has_label = false;
};

void print_speech_scores(bool as_json, const ScoredSpeech& scored) {
  if (as_json) {
    nlohmann::ordered_json json{{"set", scored.set}, {"checkpoint", scored.checkpoint}};
    for (const auto& score : scored.scores) json[score.name] = score.value;
    if (!scored.has_label) {
      json["words"] = scored.words.hits + scored.words.substitutions + scored.words.deletions;
      json["substitutions"] = scored.words.substitutions;
      json["deletions"] = scored.words.deletions;
      json["insertions"] = scored.words.insertions;
    }
    json["utterances"] = scored.utterances;
    json["unreadable_utterances"] = scored.faults.unread;
    json["utterances_too_short_for_their_text"] = scored.faults.too_short;
    std::cout << json_line(json) << std::flush;
    return;
  }
  for (const auto& score : scored.scores) {
    const bool is_rate = score.name == std::string("wer") || score.name == std::string("cer");
    std::cout << score.name << " " << fixed(score.value, is_rate ? 2 : 4)
              << (is_rate ? " %  " : "  ");
  }
  std::cout << "utterances " << with_thousands(scored.utterances);
  if (scored.faults.unread > 0) {
    std::cout << "  unreadable " << with_thousands(scored.faults.unread);
  }
  if (scored.faults.too_short > 0) {
    std::cout << "  too short for their text " << with_thousands(scored.faults.too_short);
  }
  std::cout << std::endl;
}

// The tables that were asked for.
void write_tables(const SpeechEvalFiles& asked, const SpeechEvaluation& found,
                  const SpokenSet& spoken, const std::string& normalize,
                  const data::Labels* labels) {
  if (asked.predictions.empty() && asked.confusions.empty()) return;
  std::vector<UtteranceResult> results;
  Confusions confusions(normalize);
  for (const int64_t sample : spoken.used) {
    results.push_back(result_of(found, spoken, sample, labels));
    if (results.back().is_read) {
      confusions.add(results.back().reference, results.back().hypothesis);
    }
  }
  if (!asked.predictions.empty()) {
    write_named_output(asked.predictions, utterance_table(results, normalize));
  }
  if (!asked.confusions.empty()) write_named_output(asked.confusions, confusions.text());
}

metrics::EditCounts summed_words(const SpeechEvaluation& found) {
  const auto sum = [&](int64_t column) { return std::llround(found.table.sum(column)); };
  return {.hits = sum(kWordHits),
          .substitutions = sum(kWordSubstitutions),
          .deletions = sum(kWordDeletions),
          .insertions = sum(kWordInsertions)};
}

}  // namespace

int evaluate_speech(const EvalRequest& request, const CommandContext& context) {
  const auto& experiment = request.experiment.options;
  const auto& own = experiment::speech_of(experiment);
  const auto& asked = request.own.as<SpeechEvalFiles>();
  const auto files = eval_files(asked.data, own.data.test, own.data.valid,
                                "give --data with a manifest, a folder or an archive of sounds");
  const auto folder = runs::RunFolder::open(request.run_directory);
  const auto& group = context.group;
  const auto run = load_speech_run(experiment, folder, request.checkpoint, context.device);
  const audio::SoundFeatures sounds(own.features);
  const int64_t threads = experiment::num_threads(experiment);
  const auto spoken = open_spoken_set(
      own, run.units, sounds,
      {.key = files.key, .paths = files.paths, .threads = threads, .tells = group.is_root()});
  const std::string checkpoint = checkpoint_names(run.checkpoints, folder);
  if (group.is_root()) {
    log::info("checkpoint " + checkpoint + ", " + files.name + " sounds");
    warn_of_left_out(spoken.set->left_out());
    for (const auto& remark : spoken.remarks) log::warn(files.key + ": " + remark);
  }
  distributed::require_agreement(
      group, {{"checkpoint", checkpoint + " " + checkpoint_hash(run.checkpoints)},
              {"sounds", hex64(spoken.set->hash()) + " of " +
                             counted(std::ssize(spoken.used), "utterance")}});
  const SpeechReader reader(run.models, run.units, own);
  const auto found = evaluate_spoken_set(reader, spoken, sounds, own,
                                         {.device = context.device,
                                          .group = group,
                                          .loading = data::speech_loading(own.data, threads)});
  for (const int64_t sample : spoken.used) {
    if (found.table.row(sample)[kUtteranceOverflowed] == 0) continue;
    refuse_not_finite(spoken.set->place(sample), "what was heard of it", request.run_directory);
  }
  if (!group.is_root()) return 0;  // all have the same result, one says it
  if (const std::string clipped = spoken.set->clipped(); !clipped.empty()) {
    log::warn(files.key + ": " + clipped);
  }
  const data::Labels* labels = run.units.labels ? &*run.units.labels : nullptr;
  write_tables(asked, found, spoken, own.eval.normalize, labels);
  print_speech_scores(request.json, {.checkpoint = checkpoint,
                                     .set = files.name,
                                     .scores = scores_of_speech(found, own.has_label()),
                                     .utterances = std::ssize(spoken.used),
                                     .faults = faults_of(found, spoken),
                                     .words = summed_words(found),
                                     .has_label = own.has_label()});
  return 0;
}

}  // namespace stretto::tasks
