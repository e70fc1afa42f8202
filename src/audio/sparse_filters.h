#pragma once

#include <cstdint>
#include <vector>

namespace stretto::audio {

/// Filters that are zero but for a few bins that follow each other: filter m has the weights
/// begins[m] … begins[m + 1] - 1, of the bins from firsts[m] on.
struct SparseFilters {
  std::vector<int64_t> firsts;     ///< [filters]
  std::vector<int64_t> begins{0};  ///< [filters + 1]
  std::vector<float> weights;

  int64_t size() const { return static_cast<int64_t>(firsts.size()); }
};

}  // namespace stretto::audio
