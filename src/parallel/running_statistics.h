#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <vector>

#include "distributed/process_group.h"
#include "nn/batch_norm.h"

namespace stretto::parallel {

/// The running statistics of a model's batch norms, moved once for each update that is stepped.
///
/// Each micro-batch of the update, whoever had it, moves them in its turn by the layer's momentum
/// towards the moments that it was normalised by (their mean, when a layer was called more than
/// once). So they are the same on all ranks and for any number of processes, and an update that is
/// skipped or done again leaves nothing behind.
///
/// Synchronised (`dist.batch_norm = "all"`), the micro-batches that all ranks run at once are one
/// batch: they are normalised together and move the statistics once. The last micro-batches of an
/// update, when they are fewer than the ranks, are normalised each for itself.
class RunningStatistics {
 public:
  struct Setup {
    bool synchronised = false;
    /// Adds up in the order of micro-batches, so that any number of processes gives the same bits;
    /// else each rank adds up its own first.
    bool ordered = false;
  };

  /// Takes the moments of the model's batch norms, but for those that are frozen, from now on.
  RunningStatistics(torch::nn::Module& model, distributed::ProcessGroup group, Setup setup);
  ~RunningStatistics();
  RunningStatistics(const RunningStatistics&) = delete;
  RunningStatistics& operator=(const RunningStatistics&) = delete;

  bool empty() const { return norms_.empty(); }

  /// An update of `count` micro-batches begins, or begins again.
  void begin(int64_t count);
  /// What comes is this rank's micro-batch number `part` of the update.
  void before_micro_batch(int64_t part);
  /// The update's last micro-batch is through: nothing is synchronised any more.
  void end();
  /// Whether the other ranks wait for this one within its present micro-batch.
  bool is_synchronised() const { return synchronised_now_; }

  /// Moves the statistics by the last update. Collective.
  void move();

 private:
  struct Norm {
    nn::BatchNormImpl* layer;
    at::Tensor mean, var;  // sums over the calls of the present micro-batch
    int64_t calls = 0;
  };

  void close_micro_batch();
  void synchronise(bool wanted);
  int64_t turn_of(int64_t micro_batch) const;
  int64_t num_turns() const;
  void add(at::Tensor& sum, const at::Tensor& moments, int64_t micro_batch) const;
  at::Tensor sum_over_ranks() const;

  distributed::ProcessGroup group_;
  Setup setup_;
  std::vector<Norm> norms_;
  // Flat numbers of all layers: mean and variance of each channel, layer by layer.
  at::Tensor momentum_;
  std::vector<at::Tensor> moments_;  // of each of this rank's micro-batches
  int64_t count_ = 0;                // micro-batches of the update
  bool is_open_ = false;             // inside a micro-batch
  bool synchronised_now_ = false;
};

}  // namespace stretto::parallel
