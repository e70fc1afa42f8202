#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/task.h"

namespace stretto::train {

/// What `train.freeze` came to.
struct FrozenParts {
  int64_t num_frozen = 0, num_trained = 0;  ///< parameters; tied ones once
  int64_t num_frozen_tensors = 0, num_trained_tensors = 0;
  /// Tensors that were named by something else that they are, in words:
  /// "`embedding.weight` as `encoder.embedding.weight`".
  std::vector<std::string> tied;
  int64_t num_batch_norms = 0;  ///< that became maps of fixed numbers

  /// "1,234 in 5 tensors (train.freeze)"
  std::string text() const;
};

/// Takes the tensors that the patterns name out of training, before an Arena is made: autograd
/// computes no gradient for them, and the arena has no slot for them, so that gradient, norms,
/// optimizer and buckets do not know them. They belong to checkpoints like all others.
///
/// A batch norm whose gain and bias are both frozen normalises by its running statistics, which
/// stay, in training too: the part is a fixed map. Dropout in a frozen part goes on.
///
/// Freezing again what is frozen changes nothing. Throws Error(kUsage) for a pattern that matches
/// nothing, and when nothing would be left to train.
FrozenParts freeze_parts(Task& task, const std::vector<std::string>& patterns);

}  // namespace stretto::train
