#pragma once

#include <cstdint>
#include <string>

#include "experiment/experiment.h"
#include "experiment/task_rules.h"

namespace stretto::experiment {

/// Tokens of a sentence, about, where they were not counted.
inline constexpr double kTokensPerSentence = 25;

/// The bound of a micro-batch that `data.max_tokens` and `data.max_samples` bound: where so few
/// samples fit that the longest ones have fewer tokens, it is the tokens of those.
///
/// @param max_samples  0 = any number
/// @param longest      tokens that no sample exceeds
BatchBound token_bound(int64_t max_tokens, int64_t max_samples, int64_t longest);

/// What the batch of an experiment makes of its learning rate.
struct ScaledRate {
  const Experiment& e;
  BatchBound micro_batch;
  ModelWidth width;
  double batch = 0;      ///< bound of an update over all processes, in units of `micro_batch`
  double reference = 0;  ///< optim.reference_batch in the same; 0 = the rate is not scaled
  std::string scaling;   ///< optim.lr_scaling; "none" without a reference
  double peak_lr = 0;    ///< after scaling
  double ratio = 1;      ///< batch / reference; 1 without one

  explicit ScaledRate(const Experiment& options);
  /// The rate of a given family; null = the family is not known, and the rate is not scaled.
  ScaledRate(const Experiment& options, const TaskRules* task);

  bool rate_is_peak() const { return e.schedule.name != "noam"; }
  /// Where only the data show how many updates a warm-up has, at most this; infinite with noam and
  /// a model without a width, which the rules refuse.
  double rate_after_warmup() const;
};

}  // namespace stretto::experiment
