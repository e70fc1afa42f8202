#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "parallel/rank_results.h"
#include "train/task.h"

namespace stretto::train {

/// Adds up what the micro-batches of an update come to.
///
/// Weights and counts are known on the host and added at once. Losses and statistics stay on the
/// device and are read together when all micro-batches are done, so that a device never waits for
/// them in between. The sums of a micro-batch stand in the order losses, weights, statistics,
/// counts.
class UpdateSums {
 public:
  explicit UpdateSums(const Task& task);

  /// Begins one attempt at an update on this rank.
  /// @param turns  its micro-batches; @return their sums, all 0
  parallel::RankResult begin(size_t turns);
  /// Adds a micro-batch, or a part of one.
  void add(size_t turn, const Sums& sums, std::span<const double> weights,
           parallel::RankResult& rank_result);
  /// Adds what is still on the device.
  void read(parallel::RankResult& rank_result);

  size_t num_losses() const { return num_losses_; }
  /// What the first loss of a micro-batch is divided by, so far.
  double first_weight(const parallel::MicroSums& micro) const { return micro[num_losses_]; }
  Totals totals(const std::vector<parallel::MicroSums>& micros) const;

 private:
  /// Scalars of a part, in the order of its sums.
  struct Unread {
    size_t turn;
    std::vector<at::Tensor> losses, statistics;
  };
  size_t num_sums() const { return 2 * num_losses_ + num_statistics_ + num_counts_; }

  size_t num_losses_, num_statistics_, num_counts_;
  std::vector<Unread> unread_;
};

}  // namespace stretto::train
