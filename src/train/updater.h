#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "compress/compress_options.h"
#include "compress/masks.h"
#include "compress/prune_schedule.h"
#include "compress/rounded_weights.h"
#include "data/rank_batches.h"
#include "distributed/dist_options.h"
#include "distributed/process_group.h"
#include "optim/arena.h"
#include "optim/loss_scaler.h"
#include "optim/noise_scale.h"
#include "optim/optimizer.h"
#include "optim/precision.h"
#include "optim/weight_average.h"
#include "optim/weight_noise.h"
#include "parallel/carry.h"
#include "parallel/gradient_reducer.h"
#include "parallel/out_of_memory.h"
#include "parallel/rank_results.h"
#include "parallel/running_statistics.h"
#include "parallel/sharded_state.h"
#include "runs/train_state.h"
#include "train/run_options.h"
#include "train/task.h"
#include "train/tied_samples.h"
#include "train/train_options.h"
#include "train/update_batches.h"
#include "train/update_result.h"
#include "train/update_sums.h"

namespace stretto::train {

/// What an update is made with.
struct UpdaterSetup {
  RunOptions run;
  TrainOptions train;
  optim::OptimOptions optim;
  distributed::DistOptions dist;
  optim::Precision precision;
  data::Loading loading = {};
  compress::CompressOptions compress = {};
  /// Elements of the optimizer's state that gather_state() and scatter_state() send at once.
  int64_t state_chunk = int64_t{1} << 22;
};

/// Forward and backward of one update on all ranks, and the step.
///
/// data::RankBatches says which micro-batches, or parts of them, a rank has. Whatever ranks decide
/// (skip, redo, stop) is decided from numbers that all of them have. When a rank runs out of memory
/// it still joins the collectives; then all drop their gradients and do the update again with that
/// micro-batch split in two. Masks of dropout depend on samples, so that the update is the same. A
/// micro-batch of tied samples (train/tied_samples.h) is not split: the run stops instead.
///
/// The state of a task's lanes (Task::carry()) is part of the update: it moves in step() alone.
///
/// Weights that are pruned (`compress.prune`) are zero in every update, and so are their gradients,
/// what the optimizer and the average of the weights have of them, and the noise on them. With
/// `compress.quantise` an update runs with rounded weights, and steps those that are not.
class Updater {
 public:
  Updater(Task& task, optim::Arena& arena, distributed::ProcessGroup group, UpdaterSetup setup);
  ~Updater();

  /// Goes on from this place; begins an update.
  void seek(data::Position position) { update_batches_.seek(position); }
  data::Position position() const { return update_batches_.position(); }

  /// Tells what trains in the next update, by the number of completed ones (train.unfreeze), and
  /// prunes where that is due (compress.prune). All ranks call it with the same one.
  /// @return whether weights were pruned that were not before
  /// Throws Error(kUsage) on all ranks where pruning would leave nothing of a tensor.
  bool train_after(int64_t updates);
  int64_t completed() const { return completed_; }  ///< what train_after() was told last

  /// Gradients of the next update, summed over its micro-batches and ranks; moves the position.
  /// With optim.weight_noise and compress.quantise they are those of noisy_weights(update).
  /// Throws Error(kOutOfMemory) on all ranks when a single sample does not fit, or a micro-batch
  /// of tied samples; on this rank alone when batch norms are synchronised. Throws Error(kUsage) on
  /// all ranks where a lane comes in the wrong place (parallel::Carry::begin()).
  ///
  /// @param stop  asked once, after backward: this rank's reason to stop, 0 = none
  UpdateResult gradients(int64_t update, const std::function<int()>& stop);

  /// Steps with the gradients of the last `gradients()`, which must have been finite, and moves the
  /// running statistics of batch norms, the state of lanes and the average of the weights
  /// (train.ema_decay, train.average_nonmono).
  void step(const UpdateResult& result, double lr, double clip, int64_t number);

  /// Tells the loss scaler how the update went. Throws Error(kNumeric) when it cannot go on.
  void scaled(const UpdateResult& result);

  /// Adds the noise of this update (optim.weight_noise) to the model's weights, or rounds them
  /// (compress.quantise), until the result is destroyed; without either nothing changes.
  [[nodiscard]] optim::NoisyWeights noisy_weights(int64_t update);
  /// Rounds all weights that compress.quantise names, as they will be stored, until the result is
  /// destroyed: for validations. @param updates  completed ones
  [[nodiscard]] optim::NoisyWeights rounded_weights(int64_t updates);

  /// Which weights are pruned.
  const compress::Masks& masks() const { return masks_; }
  /// Takes the masks of a checkpoint, or none, as its weights have them; all ranks call it alike.
  /// @return names of tensors that this model does not have so
  std::vector<std::string> set_masks(const compress::PackedMasks& masks);

  /// What communication cost this rank since the update began, or began again for lack of memory;
  /// after step() the way of the parameters too.
  parallel::ReductionStats communication() const { return reducer_.stats(); }

  /// Tells behind how many updates the mean of the weights begins (train.average_nonmono). All
  /// ranks call it alike, after a restore and after each validation.
  void average_after(std::optional<int64_t> updates);

  /// Gives the model the average of its weights until the result is destroyed; null when there is
  /// no average. The call is collective, the destruction is not. Costs a copy of the weights.
  [[nodiscard]] std::unique_ptr<optim::KeptWeights> use_average();

  /// The optimizer's state with flat tensors of the whole arena's size, on rank 0; elsewhere empty.
  /// The average of the weights is one of them, optim::kWeightAverage; the state of lanes follows,
  /// "carry/…", in the order of lanes.
  /// Collective; no other rank needs more room than UpdaterSetup::state_chunk elements.
  std::vector<optim::StateTensor> gather_state();
  /// The other way round: cuts what rank 0 has. Collective, with the same room. `tensors` only
  /// matter on rank 0.
  void scatter_state(const std::vector<optim::StateTensor>& tensors);
  /// Bytes of the state on this rank: with `sharded`, of the optimizer's slice alone.
  int64_t state_bytes() const;
  /// Shapes of gather_state() for reading a checkpoint into; every rank may call it.
  std::vector<optim::StateTensor> empty_state();
  /// Rank 0's parameters to all, with which an average begins anew. Collective.
  void broadcast_parameters();

  /// Where in the arena the sum over ranks stands after gradients(); see GradientReducer.
  optim::Slice owned() const { return reducer_.owned(); }
  /// The state of all lanes as the last update read it, on every rank. Collective; after a step it
  /// is what the next update reads.
  const parallel::Carry& gather_carry();
  /// The context of a micro-batch of this update, for Task::loss().
  StepContext context_of(int64_t update) const;
  optim::LossScaler& scaler() { return *scaler_; }
  optim::NoiseScale& noise_scale() { return noise_; }
  /// The last update's micro-batches of this rank, for a closer look at what went wrong.
  const std::vector<Prepared>& batches() const { return update_batches_.batches(); }
  std::vector<data::Position> positions() const { return update_batches_.positions(); }
  /// What the last update divided its losses by; see train::objective().
  const std::vector<double>& divisors() const { return divisors_; }

 private:
  struct Attempt;
  parallel::RankResults attempts(int64_t update, const std::function<int()>& stop,
                                 UpdateResult& result);
  Attempt attempt(int64_t update, int64_t count);
  void run_part(int64_t part, int64_t update, int64_t count, parallel::RankResult& rank_result);
  void run_micro_batch(int64_t part, int64_t update, parallel::RankResult& rank_result);
  void divide_by_totals();
  double divisor(const Totals& totals) const;
  optim::GradientPart gradient_part(double weight, double sum_norm_sq) const;
  void give_up(int64_t part, int64_t update, parallel::RankResult& rank_result);
  void finish(Attempt& made);
  void sum_up(int64_t update, const parallel::RankResults& rank_results, UpdateResult& result);
  bool prune_after(int64_t updates);
  void hold_gradients();
  void add_noise(int64_t update, UpdateResult& result);
  uint64_t key_of(int64_t update, uint64_t purpose) const;
  bool measures_small_batch() const;
  Error no_memory(int64_t update, int64_t split) const;
  double largest_gradient();
  std::vector<optim::StateTensor> state() const;

  Task& task_;
  optim::Arena& arena_;
  distributed::ProcessGroup group_;
  UpdaterSetup setup_;
  TiedBy tied_;
  data::RankBatches share_;
  parallel::BackwardFailpoint backward_failpoint_;
  parallel::GradientReducer reducer_;
  parallel::RunningStatistics statistics_;
  parallel::Carry carry_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::WeightAverage> average_;     // null: weights are not averaged
  std::unique_ptr<optim::WeightNoise> weight_noise_;  // null: optim.weight_noise = 0
  compress::Masks masks_;
  compress::PruneSchedule prunings_;
  std::unique_ptr<compress::RoundedWeights> rounded_weights_;  // null: compress.quantise.bits = 0
  parallel::ShardedState state_;
  std::unique_ptr<optim::LossScaler> scaler_;
  optim::NoiseScale noise_;
  UpdateBatches update_batches_;
  UpdateSums sums_;
  int64_t completed_ = 0;         ///< updates, as train_after() was told
  std::vector<double> divisors_;  // of several losses: their weights over the whole update
};

}  // namespace stretto::train
