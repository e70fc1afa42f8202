#include "tasks/cost_batches.h"

#include <algorithm>
#include <numeric>

namespace stretto::tasks {
namespace {

std::vector<size_t> ordered(std::span<const int64_t> costs, CostOrder order) {
  std::vector<size_t> numbers;
  for (size_t i = 0; i < costs.size(); ++i) {
    if (costs[i] > 0) numbers.push_back(i);
  }
  if (order == CostOrder::kAsRead) return numbers;
  const bool longest_first = order == CostOrder::kLongestFirst;
  std::stable_sort(numbers.begin(), numbers.end(), [&](size_t a, size_t b) {
    return longest_first ? costs[a] > costs[b] : costs[a] < costs[b];
  });
  return numbers;
}

}  // namespace

std::vector<std::vector<size_t>> cost_batches(std::span<const int64_t> costs,
                                              const CostBatchOptions& options,
                                              int64_t num_threads) {
  int64_t bound = options.max_cost;
  if (options.for_all_threads) {
    const int64_t sum = std::accumulate(costs.begin(), costs.end(), int64_t{0});
    bound = std::min(bound, (sum + num_threads - 1) / num_threads);
  }
  std::vector<std::vector<size_t>> batches;
  int64_t cost = 0;
  for (const size_t number : ordered(costs, options.order)) {
    cost += costs[number];
    const bool is_full = !batches.empty() && options.max_samples > 0 &&
                         std::ssize(batches.back()) >= options.max_samples;
    if (batches.empty() || is_full || cost > bound) {
      batches.emplace_back();
      cost = costs[number];
    }
    batches.back().push_back(number);
  }
  return batches;
}

}  // namespace stretto::tasks
