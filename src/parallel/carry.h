#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "distributed/process_group.h"

namespace stretto::parallel {

/// A tensor of the state that a model takes from one update to the next.
struct LaneState {
  std::string name;   ///< "h"; a checkpoint has it as "carry/h"
  at::Tensor values;  ///< fp32 [lanes, …], on the device of the model
};

/// The lane of each sample of a batch, as data::Batch::lanes.
using Lanes = std::vector<int32_t>;

/// The state that a model takes from one update to the next, by lane: what truncated
/// backpropagation through time carries from a stretch of a text to the next one.
///
/// The micro-batches of an update read the state that the last stepped update left, and propose the
/// next state of their lanes. commit() takes the proposals over when the update is stepped. An
/// update that is skipped therefore leaves the state as it was.
///
/// A lane comes at most once in an update, and always in the same micro-batch of it. That one falls
/// to the same rank each time (data::RankBatches), so that training sends no state: a rank knows
/// the state of its own lanes, and gather() brings all of them together. Any number of processes
/// reads and proposes the same bits, given the same weights.
class Carry {
 public:
  /// @param first  the state before the first update, the same on all ranks; empty = there is none.
  ///               Its tensors are copied.
  /// Throws c10::Error for tensors that are not fp32, or not of the same number of lanes.
  Carry(const std::vector<LaneState>& first, distributed::ProcessGroup group);

  bool empty() const { return states_.empty(); }
  int64_t num_lanes() const { return static_cast<int64_t>(micro_batch_of_.size()); }

  /// Copies of what the last stepped update left in these lanes: [lanes.size(), …] for each state,
  /// without a gradient.
  std::vector<at::Tensor> rows(const Lanes& lanes) const;

  /// An update begins: proposals of one that was not stepped are dropped.
  /// @param micro_batches  the lanes of each micro-batch of the update, whichever rank has it
  /// Throws Error(kUsage) for a lane that does not exist, comes twice, or has come in another
  /// micro-batch of an update so far. All ranks throw it alike.
  void begin(const std::vector<Lanes>& micro_batches);
  /// The state of these lanes once the update is stepped, in the shapes of rows(); gradients are
  /// left behind.
  void propose(const Lanes& lanes, const std::vector<at::Tensor>& next);
  /// The update is stepped: what was proposed since begin() is the state.
  void commit();

  /// Brings the lanes of all ranks to every rank. Collective.
  void gather();
  /// All lanes in their order; those of other ranks are up to date after gather() alone. Writing to
  /// the tensors sets the state.
  const std::vector<LaneState>& states() const { return states_; }

 private:
  struct Proposal {
    at::Tensor lanes;  // [rows]
    std::vector<at::Tensor> next;
  };

  at::Tensor index_of(const Lanes& lanes) const;
  std::pair<at::Tensor, std::vector<int64_t>> lanes_by_rank() const;

  std::vector<LaneState> states_;
  distributed::ProcessGroup group_;
  std::vector<int64_t> micro_batch_of_;  // by lane: where in an update it comes; -1 = not known
  std::vector<Proposal> proposals_;
};

}  // namespace stretto::parallel
