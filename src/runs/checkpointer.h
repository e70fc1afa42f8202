#pragma once

#include <cstdint>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "compress/masks.h"
#include "optim/arena.h"
#include "optim/optimizer.h"
#include "runs/checkpoint_tensors.h"
#include "runs/keep_options.h"
#include "runs/train_state.h"
#include "store/checkpoint.h"

namespace stretto::runs {

/// Who wrote a checkpoint.
struct RunIdentity {
  std::string run_id;
  std::string config_hash;
  int64_t world_size = 1;
  std::map<std::string, std::string> tokenizer = {};  ///< see tokenizer_hashes(); empty = unknown
};

struct SaveOptions {
  bool in_background = true;  ///< train.save_in_background
};

/// What saving has cost so far.
struct SaveStats {
  int64_t saves = 0;            ///< begun
  int64_t failed = 0;           ///< of those whose end is known
  double longest_stall_ms = 0;  ///< the longest that one save() kept the training thread
  double stall_seconds = 0;     ///< all calls of save() together
  double wait_seconds = 0;      ///< all calls of wait(): at the end there is nothing to train
  double write_seconds = 0;     ///< files, checksums, fsync and pruning, beside training
};

/// Saves and restores one run: arena, optimizer state, counters. Decides which checkpoints stay.
///
/// save() copies everything into buffers of the host and returns; a thread writes the files, and
/// only when they are durable does it publish them and prune older ones, so that a kill at any
/// moment leaves the new checkpoint or the one before. At most one save is in progress: the next
/// one waits for it first. The buffers cost as much memory as the weights and the optimizer state
/// together and are kept; with `in_background = false` tensors on a CPU are written from where they
/// lie, and save() returns when all is done.
///
/// save(), poll() and wait() learn of a failure (Error(kIo)): they warn of it and count it, and
/// throw the third in a row. Every other error is thrown as it is. One thread calls all members.
class Checkpointer {
 public:
  Checkpointer(std::filesystem::path run_directory, RunIdentity identity, KeepOptions options,
               SaveOptions save = {});
  ~Checkpointer();  ///< waits; warns of a failure that was not reported
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  /// Restores the newest valid checkpoint, moving broken ones aside; nullopt when there is none.
  /// Waits for a save that is on its way. Throws Error(kBadData) when checkpoints exist but none is
  /// valid, or when one belongs to another architecture or was trained with another tokenizer.
  /// @param state  tensors to be filled; flat ones have the whole arena's size
  /// @param masks  takes those of pruned weights, or none; null = they are not asked for
  std::optional<TrainState> restore(optim::Arena& arena,
                                    const std::vector<optim::StateTensor>& state,
                                    compress::PackedMasks* masks = nullptr);
  /// The same for an optimizer that steps the whole arena.
  std::optional<TrainState> restore(optim::Arena& arena, optim::Optimizer& optimizer);

  /// Steps of the checkpoints that look complete, ascending. Waits for a save that is on its way.
  std::vector<int64_t> steps();
  /// Gives up what came after `step`, so that the next restore() goes back there: newer checkpoints
  /// are renamed to `undone-step_…`, where nothing looks for them, and named in the log. Waits for
  /// a save that is on its way. Throws Error(kIo).
  void undo_after(int64_t step);

  /// Begins a save. When it returns, the tensors may change.
  /// @param state  of the whole arena: what sharded optimizers hold is joined before
  /// @param masks  of pruned weights; null = nothing is pruned
  void save(const optim::Arena& arena, const std::vector<optim::StateTensor>& state,
            const TrainState& train_state,
            std::shared_ptr<const compress::PackedMasks> masks = nullptr);
  /// The same for an optimizer that steps the whole arena.
  void save(const optim::Arena& arena, optim::Optimizer& optimizer, const TrainState& train_state);

  /// Learns of a save that has ended meanwhile; never waits. May be called in every update: it
  /// costs nothing.
  void poll();
  /// Waits for the save on its way: before the last checkpoint is counted on.
  void wait();

  /// Whether the newest save whose end is known failed: after wait(), the newest of all.
  bool last_save_failed() const { return failures_in_a_row_ > 0; }
  const SaveStats& stats() const { return stats_; }

  /// Steps that stay, given what is there: the newest, the best, the multiples of keep_every;
  /// with keep_good also the newest that a finite update followed.
  static std::vector<int64_t> steps_to_keep(const std::vector<int64_t>& steps,
                                            const TrainState& state, const KeepOptions& options);

 private:
  /// What became of one save.
  struct Written {
    int64_t step = 0;
    std::optional<Error> failure, prune_failure;
    double seconds = 0;
  };

  Written write(const TrainState& state);  ///< on the writer's thread
  void collect();

  std::filesystem::path run_directory_;
  RunIdentity identity_;
  KeepOptions options_;
  SaveOptions save_options_;
  store::CheckpointStore store_;
  int failures_in_a_row_ = 0;
  SaveStats stats_;
  Snapshot snapshot_;             ///< belongs to the writer while `writing_` is valid
  std::future<Written> writing_;  ///< last: its destructor waits for the thread that uses the rest
};

}  // namespace stretto::runs
