#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace stretto::train {

/// Everything that a run carries from one update to the next beside tensors; state.json of a
/// checkpoint. Randomness is no state: it is a function of (seed, counters).
struct TrainState {
  int64_t step = 0;         ///< finished updates
  int64_t epoch = 0;        ///< of the next micro-batch, from 0
  int64_t batch_index = 0;  ///< next micro-batch inside the epoch
  int64_t validated_step = 0;
  int64_t bad_validations = 0;  ///< validations in a row without improvement
  int64_t skipped_updates = 0;  ///< in all
  int64_t skipped_in_a_row = 0;
  double seconds = 0;  ///< of training, over all resumes
  /// Validations so far: step -> quality, where higher is better (-nll or BLEU).
  std::map<int64_t, double> quality;
  /// What other parts carry: "loss_scaler", "noise_scale", "spikes", … -> name -> value.
  std::map<std::string, std::map<std::string, double>> parts;

  /// Step of the best validation, 0 when there was none; the earlier of two equal ones.
  int64_t best_step() const;

  std::string to_json() const;
  /// Throws Error(kBadData) naming `where`.
  static TrainState from_json(const std::string& json, const std::string& where);
};

}  // namespace stretto::train
