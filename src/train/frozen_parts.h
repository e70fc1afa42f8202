#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "optim/arena.h"
#include "optim/group_options.h"
#include "train/task.h"

namespace stretto::train {

/// What `train.freeze`, `train.unfreeze`, `model.lora` and `model.adapter` came to.
struct FrozenParts {
  int64_t num_frozen = 0, num_trained = 0;  ///< parameters; tied ones once
  int64_t num_frozen_tensors = 0, num_trained_tensors = 0;
  /// Tensors that were named by something else that they are, in words:
  /// "`embedding.weight` as `encoder.embedding.weight`".
  std::vector<std::string> tied;
  int64_t num_batch_norms = 0;      ///< that became maps of fixed numbers
  std::vector<std::string> adding;  ///< sections that froze what they do not train: "model.lora"
  /// Those that train only from an update on, among those that train.
  std::vector<optim::Arena::LateParameter> late;
  std::vector<int64_t> late_sizes;  ///< parameters of each

  /// "1,234 in 5 tensors (train.freeze)"
  std::string text() const;
  /// "1,234 in 5 tensors after 200 updates, 2,345 in 6 tensors after 400" (train.unfreeze); empty
  /// without any.
  std::string late_text() const;
};

/// Takes the tensors that the patterns name out of training, before an Arena is made: autograd
/// computes no gradient for them, and the arena has no slot for them, so that gradient, norms,
/// optimizer and buckets do not know them. They belong to checkpoints like all others.
///
/// A batch norm whose gain and bias are both frozen normalises by its running statistics, which
/// stay, in training too: the part is a fixed map. Dropout in a frozen part goes on.
///
/// Of a model with LoRA (nn/lora.h) only its matrices train, and what model.lora.train names; of
/// one with adapters (nn/adapter.h) only these, and what model.adapter.train names.
/// Tensors of `unfreeze` (train.unfreeze) are not frozen, but late: the arena is to be told.
///
/// Freezing again what is frozen changes nothing. Throws Error(kUsage) for an entry that cannot be
/// read, for a pattern that matches nothing, and when nothing would be left to train at first.
FrozenParts freeze_parts(Task& task, const std::vector<std::string>& patterns,
                         const std::vector<std::string>& unfreeze = {});

/// The parameters of a task's model as patterns see them, in the order of registration.
std::vector<optim::TensorName> tensor_names(Task& task);

}  // namespace stretto::train
