#include "sweep/pareto.h"

#include <algorithm>
#include <cmath>

namespace stretto::sweep {

std::vector<size_t> pareto_front(std::span<const Trade> trades, bool higher_is_better) {
  const auto better = [&](size_t a, size_t b) {
    return higher_is_better ? trades[a].value > trades[b].value : trades[a].value < trades[b].value;
  };
  std::vector<size_t> order;
  for (size_t i = 0; i < trades.size(); ++i) {
    if (std::isfinite(trades[i].cost) && std::isfinite(trades[i].value)) order.push_back(i);
  }
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    if (trades[a].cost != trades[b].cost) return trades[a].cost < trades[b].cost;
    return better(a, b);
  });
  std::vector<size_t> front;
  for (const size_t one : order) {
    if (front.empty() || better(one, front.back())) front.push_back(one);
  }
  return front;
}

}  // namespace stretto::sweep
