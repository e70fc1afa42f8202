#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace stretto::metrics {

/// Throws std::invalid_argument unless `index` is in [0, size).
inline void require_index(int64_t index, int64_t size, const char* what) {
  if (index >= 0 && index < size) return;
  throw std::invalid_argument(std::string(what) + " " + std::to_string(index) + " is not below " +
                              std::to_string(size));
}

/// Replaces sums by as many others. Throws std::invalid_argument for another number of them.
inline void take_sums(std::vector<double>& sums, std::span<const double> given) {
  if (given.size() != sums.size()) {
    throw std::invalid_argument(std::to_string(given.size()) + " sums where there are " +
                                std::to_string(sums.size()));
  }
  sums.assign(given.begin(), given.end());
}

}  // namespace stretto::metrics
