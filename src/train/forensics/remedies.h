#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "train/task_words.h"

namespace stretto::train {

/// What advice on numbers that explode must know of a run: it shall name nothing that is in force
/// already, and nothing that the run's folder refuses.
struct AdviceContext {
  double clip_norm = 0;     ///< optim.clip_norm
  bool rolls_back = false;  ///< train.forensics.policy = "rollback"
  /// Newest that a finite update followed; empty = there is none.
  std::filesystem::path checkpoint = {};
  TaskWords words = {};
};

/// Path of the newest checkpoint in a run's folder that is not after `step`; empty = none that can
/// be seen from here. Never throws: it is asked where there is a failure already.
std::filesystem::path newest_checkpoint(const std::filesystem::path& run_directory, int64_t step);

/// Whether optim.clip_norm = 1.0 would change anything for the better.
bool may_clip(const AdviceContext& run);

/// "a lower optim.lr, a longer schedule.warmup_steps or optim.clip_norm = 1.0"
std::string stabilising_settings(const AdviceContext& run);

/// Where other values can be given, since a run's folder keeps its own: a new run, which begins
/// with the weights of the checkpoint if there is one.
std::string place_of_other_values(const AdviceContext& run);

/// "; or resume this run with train.forensics.policy=rollback", which its folder takes; empty when
/// that is in force, or nothing is there to go back to.
std::string rollback_instead(const AdviceContext& run);

}  // namespace stretto::train
