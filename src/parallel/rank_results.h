#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/rank_batches.h"
#include "distributed/process_group.h"
#include "optim/noise_scale.h"

namespace stretto::parallel {

/// What a micro-batch, or a rank's parts of it, adds up to: as many sums as the training loop
/// keeps, in its order.
using MicroSums = std::vector<double>;

/// Adds sum by sum.
void add_sums(MicroSums& to, const MicroSums& from);

/// What one attempt at an update came to on one rank.
struct RankResult {
  size_t num_sums = 0;            ///< of each micro-batch; the same on all ranks
  std::vector<MicroSums> micros;  ///< of this rank's turns (data::RankBatches), in order
  int64_t failed_part = -1;       ///< the part of its work that there was no memory for; -1: none
  bool can_split = false;         ///< that part has more than one sample
  bool late = false;              ///< a gradient changed after it had been sent
  int stop = 0;                   ///< its reason to stop, 0 = none
  optim::GradientPart small;      ///< the small batch of the noise scale; only rank 0 has one
};

/// The results of all ranks, the same on each of them: all decide from these numbers what becomes
/// of the update.
class RankResults {
 public:
  /// Tells the others about `mine` and hears of theirs. Collective.
  /// @param share  of this rank
  /// @param count  micro-batches of the update
  static RankResults exchange(const distributed::ProcessGroup& group,
                              const data::RankBatches& share, int64_t count,
                              const RankResult& mine);

  bool any_failed() const;
  /// A rank lacked memory for a single sample.
  bool is_hopeless() const;
  /// The first rank whose gradient changed after it had been sent.
  std::optional<int64_t> late_rank() const;
  /// The largest of all ranks' reasons to stop.
  int stop() const;
  /// The micro-batches of the update, whoever had them or parts of them.
  std::vector<MicroSums> in_order() const;
  const optim::GradientPart& small_batch() const { return by_rank_.front().small; }

 private:
  RankResults(const data::RankBatches& share, int64_t count) : share_(share), count_(count) {}

  data::RankBatches share_;
  int64_t count_;
  std::vector<RankResult> by_rank_;
};

}  // namespace stretto::parallel
