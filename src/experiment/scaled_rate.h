#pragma once

#include <string>

#include "experiment/experiment.h"

namespace stretto::experiment {

/// What the batch of an experiment makes of its learning rate.
struct ScaledRate {
  const Experiment& e;
  double batch_tokens = 0;  ///< bound of target tokens in an update, over all processes
  double reference = 0;     ///< optim.reference_batch in tokens; 0 = the rate is not scaled
  std::string scaling;      ///< optim.lr_scaling; "none" without a reference
  double peak_lr = 0;       ///< after scaling
  double ratio = 1;         ///< batch_tokens / reference; 1 without one

  explicit ScaledRate(const Experiment& options);

  bool rate_is_peak() const { return e.schedule.name != "noam"; }
  /// Where only the data tell how many updates a warm-up has, at most this.
  double rate_after_warmup() const;
};

}  // namespace stretto::experiment
