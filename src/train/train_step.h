#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "parallel/gradient_reducer.h"
#include "train/update_result.h"

namespace stretto::train {

/// One step of the training loop, an attempt at an update, as it is recorded and judged.
struct TrainStep {
  UpdateResult update;
  double lr = 0;
  bool skipped = false;               ///< the weights stayed as they were
  std::string note;                   ///< what people should know: a spike, a batch that was split
  std::optional<double> noise_scale;  ///< so far; see optim::NoiseScale::value()
  std::optional<double> sparsity;     ///< of the weights that may be pruned, if any is
  parallel::ReductionStats communication;  ///< what it cost this rank
  std::optional<Error> scaler_error;       ///< the loss scaler cannot go on
};

}  // namespace stretto::train
