#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace stretto::sweep {

/// What something costs, and how good it is.
struct Trade {
  double cost = 0, value = 0;
};

/// Those than which none is at least as good for at most the cost, and better in one: their
/// numbers, by rising cost. Of equal ones the first counts. What is not finite is left out.
std::vector<size_t> pareto_front(std::span<const Trade> trades, bool higher_is_better);

}  // namespace stretto::sweep
