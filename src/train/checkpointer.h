#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "optim/arena.h"
#include "optim/optimizer.h"
#include "store/checkpoint.h"
#include "train/train_options.h"
#include "train/train_state.h"

namespace stretto::train {

/// Who wrote a checkpoint.
struct RunIdentity {
  std::string run_id;
  std::string config_hash;
};

/// Saves and restores one run: arena, optimizer state, counters. Decides which checkpoints stay.
class Checkpointer {
 public:
  Checkpointer(std::filesystem::path run_directory, RunIdentity identity, TrainOptions options);

  /// Restores the newest valid checkpoint, moving broken ones aside; nullopt when there is none.
  /// Throws Error(kBadData) when checkpoints exist but none is valid, or when one belongs to
  /// another architecture.
  std::optional<TrainState> restore(optim::Arena& arena, optim::Optimizer& optimizer);

  /// Saves and prunes. A failure (Error(kIo)) is reported and counted; the third in a row is
  /// thrown.
  /// @return true when the checkpoint is durable
  bool save(const optim::Arena& arena, optim::Optimizer& optimizer, const TrainState& state);

  bool last_save_failed() const { return failures_in_a_row_ > 0; }

  /// Steps that stay, given what is there: the newest, the best, the multiples of keep_every.
  static std::vector<int64_t> steps_to_keep(const std::vector<int64_t>& steps,
                                            const TrainState& state, const TrainOptions& options);

 private:
  std::filesystem::path run_directory_;
  RunIdentity identity_;
  TrainOptions options_;
  store::CheckpointStore store_;
  int failures_in_a_row_ = 0;
};

/// Copies weights by name from a checkpoint's model file into the arena.
/// Throws Error(kBadData) that lists missing, unknown and misshapen tensors.
void load_weights(const store::SafetensorsFile& file, const std::string& where,
                  optim::Arena& arena);

/// The weights of an arena as views for writing; `host` keeps the bytes alive.
std::vector<store::TensorView> weight_views(const optim::Arena& arena, const torch::Tensor& buffer,
                                            const std::string& prefix, torch::Tensor& host);

}  // namespace stretto::train
