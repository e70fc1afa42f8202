#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stretto::tasks {

/// The order in which samples fill batches; samples of equal cost stay in their own order.
enum class CostOrder : uint8_t {
  kAsRead,
  kShortestFirst,
  /// The memory that the work needs shows at once, and threads that work side by side end together.
  kLongestFirst,
};

/// How samples that are only read become batches.
struct CostBatchOptions {
  CostOrder order = CostOrder::kAsRead;
  int64_t max_cost = 0;          ///< of a batch: the sum of its samples; one above it is alone
  int64_t max_samples = 0;       ///< of a batch; 0 = any number
  bool for_all_threads = false;  ///< lowers max_cost so that each thread has a batch
};

/// Cuts samples into batches, greedily. Samples of cost 0 are in no batch.
///
/// @param costs        [samples], for instance tokens
/// @param num_threads  that work side by side; counts with `for_all_threads` alone
/// @return the numbers of the samples of each batch
std::vector<std::vector<size_t>> cost_batches(std::span<const int64_t> costs,
                                              const CostBatchOptions& options,
                                              int64_t num_threads = 1);

}  // namespace stretto::tasks
