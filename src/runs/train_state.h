#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/metrics_log.h"

namespace stretto::runs {

/// Everything that a run carries from one update to the next beside tensors; state.json of a
/// checkpoint. Random numbers need no state: they are a function of (seed, counters).
struct TrainState {
  int64_t step = 0;         ///< attempts at an update so far, those that were left out too
  int64_t epoch = 0;        ///< of the next micro-batch, from 0
  int64_t batch_index = 0;  ///< next micro-batch inside the epoch
  int64_t validated_step = 0;
  int64_t bad_validations = 0;  ///< regular validations in a row without improvement
  int64_t skipped_updates = 0;  ///< in all
  int64_t skipped_in_a_row = 0;
  int64_t good_step = 0;  ///< of the newest checkpoint that a finite update followed; 0 = none
  double seconds = 0;     ///< of training, over all resumes
  /// Validations so far: step -> quality, where higher is better: the score or its negative.
  std::map<int64_t, double> quality;
  /// Validations of earlier steps are not compared with: more weights were pruned since
  /// (compress.prune), and such a model is never the best. 0 = all count.
  int64_t best_from = 0;
  /// The mark of metrics.jsonl as it was then; absent in checkpoints of earlier versions.
  std::optional<report::MetricsMark> metrics;
  /// train.max_steps once counted attempts. A checkpoint of such a version goes by that rule until
  /// its next update, so that a run which was finished is finished.
  bool counts_attempts = false;
  std::vector<double> loss_scales;  ///< of the last updates, oldest first
  /// What other parts carry: "loss_scaler", "noise_scale", "spikes", … -> name -> value.
  std::map<std::string, std::map<std::string, double>> parts;

  /// Updates that were stepped: what train.max_steps, warm-up, schedule and optimizer count.
  int64_t stepped() const { return step - skipped_updates; }

  /// Step of the best validation from best_from on, 0 when there was none; the earlier of two equal
  /// ones.
  /// @param every  looks only at validations after multiples of so many updates
  int64_t best_step(int64_t every = 1) const;

  std::string to_json() const;
  /// Throws Error(kBadData) naming `where`.
  static TrainState from_json(const std::string& json, const std::string& where);
};

}  // namespace stretto::runs
