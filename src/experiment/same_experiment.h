#pragma once

#include <filesystem>

#include "experiment/load_experiment.h"

namespace stretto::experiment {

/// How a run folder stands to the experiment that is to be trained in it.
struct RunState {
  /// The folder holds another configuration of which nothing was trained: the new one takes its
  /// place, as another run.
  bool anew = false;
  /// The tokenizer that is there, if any, may be used: nothing that shapes one has changed.
  bool keeps_tokenizer = true;
  /// Nothing was trained there, or there is no folder yet.
  bool begins = false;
};

/// Refuses to go on with the run in a folder when `now` is another experiment: Error(kUsage) with
/// the keys that differ.
///
/// What was trained is a checkpoint (those moved aside and averages count) or an update in
/// metrics.jsonl. A folder without either holds at most a tokenizer and what a log says: it failed
/// before its first update (a vocabulary too large for its text, say) and may be begun anew.
///
/// Throws Error(kBadData) when the stored configuration is not that of the run
/// (experiment/run_config.h), or is missing and run.json does not know the hash of `now`.
/// @param extend  train.max_steps and train.max_epochs may differ although they shape the schedule
RunState require_same_experiment(const std::filesystem::path& run_directory,
                                 const LoadedExperiment& now, bool extend);

}  // namespace stretto::experiment
