#pragma once

#include <string>

namespace stretto::train {

/// What messages of the training loop call a task's samples, and the keys of its family that they
/// advise to change.
struct TaskWords {
  std::string sample = "sample", samples = "samples";
  /// What to do where a micro-batch finds no memory.
  std::string smaller_batches = "make micro-batches smaller and raise train.update_freq";
  /// Keys that leave odd samples out: "data.max_ratio leaves out the odd ones"; empty = none.
  std::string odd_samples = {};
  /// A setting that makes training more stable: "model.norm = \"pre\""; empty = none, or in force.
  std::string stabilising_setting = {};
};

}  // namespace stretto::train
