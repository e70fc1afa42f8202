#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "distributed/dist_options.h"
#include "distributed/process_group.h"
#include "optim/arena.h"
#include "optim/optimizer.h"

namespace stretto::parallel {

/// What communication cost since begin(): gradients, and parameters once publish() has brought
/// them.
struct ReductionStats {
  double hidden_seconds = 0;  ///< something was sent while backward went on
  double wait_seconds = 0;    ///< the training thread sent it itself, or waited until it was there
  int64_t buckets = 0;
  int64_t bytes = 0;  ///< of gradients, handed to the process group

  /// That gradients or parameters were under way: never less than training waited.
  double seconds() const { return hidden_seconds + wait_seconds; }
};

/// Brings the gradients of all processes together: `dist.strategy`.
///
/// An update calls, on every rank and in this order,
///
///     begin(n)                         n = this rank's micro-batches, maybe 0; zeroes the
///     gradients for each micro-batch i:
///       before_backward(i)             backward accumulates into arena.grads()
///       after_backward(i)
///     finish()                         throws Error(kPeerLost) when a rank is lost
///
/// and afterwards the summed gradient (of all ranks, not divided by anything) stands in `owned()`
/// of arena.grads(): the whole arena for all_reduce (the same bits on each rank), this rank's slice
/// for sharded, the whole arena on rank 0 for parameter_server. Then the optimizer steps `owned()`,
/// and `publish()` brings the new parameters to all ranks.
///
/// With dist.overlap buckets leave from a communication thread while the last backward runs, in the
/// order in which gradients became ready in the first update; without it they leave in finish().
/// With dist.deterministic each micro-batch's gradient is kept apart and summed in the order of
/// micro-batches over all ranks (micro-batch j of the update is that of rank j % size), so that any
/// number of processes gives the same bits; one process follows the same order of additions.
class GradientReducer {
 public:
  GradientReducer(optim::Arena& arena, distributed::ProcessGroup group,
                  const distributed::DistOptions& options);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  /// With dist.overlap on a CPU: what the model looks up in tables that are output projections too
  /// is summed apart from these tables, which then need not wait for the end of backward.
  void watch_embeddings(const torch::nn::Module& model);

  /// Other parameters have a gradient from the next update on, on all ranks: it learns their order
  /// again, as the first one does. Between updates.
  void learn_order_anew();

  void begin(int64_t local_micro_batches);
  void before_backward(int64_t i);
  void after_backward(int64_t i);
  void finish();

  /// An exception broke this rank's backward: gradients are worthless, but the other ranks wait.
  /// Joins what is left of this update's collectives with what is there; the update must then be
  /// redone on all ranks (the caller sees to that), beginning with begin().
  void abandon();

  optim::Slice owned() const;
  /// Sum of squares of owned() gradients over all ranks, the same bits for any strategy; not finite
  /// when any gradient is not.
  double sum_of_squares();
  void publish();

  /// Asks for local_sum_of_squares() from the next update on. It costs a pass over the gradient on
  /// the thread that sends.
  void measure_local(bool wanted);
  /// Sum of squares of this rank's gradient as it was before it met the others', after finish();
  /// 0 when nothing was sent (one process, dist.deterministic) or a GPU had no memory left for it.
  double local_sum_of_squares() const;

  /// begins[r] .. begins[r + 1] is rank r's slice; multiples of kernels::sum_of_squares' blocks.
  const std::vector<int64_t>& slice_begins() const;
  ReductionStats stats() const;
  /// The arena's slots in the order in which buckets are filled: reverse registration until an
  /// order was learned (with dist.overlap, in the first finish()), the same on every rank.
  const std::vector<size_t>& order() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stretto::parallel
