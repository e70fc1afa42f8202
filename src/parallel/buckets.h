#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stretto::parallel {

/// Elements [begin, end) of the arena.
struct Range {
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

/// Gradients that travel together.
struct Bucket {
  std::vector<Range> ranges;  ///< ascending; neighbours are one range
  std::vector<size_t>
      tensors;  ///< that have elements here: it may leave when all of them are ready

  int64_t size() const;  ///< elements
};

/// Cuts the arena into buckets of at most `most` elements, filled in the order in which tensors
/// become ready; what does not fit opens the next one, and a tensor larger than `most` fills
/// several. Each element is in exactly one bucket, and the buckets leave as they stand.
///
/// Tensors of fewer than `small` elements (biases, norms) lie far from the matrices between which
/// they become ready, and would make buckets of several ranges, which have to be copied. They have
/// buckets of their own, before the last large tensor.
///
/// @param extents  place of each tensor
/// @param order    a permutation of the tensors
std::vector<Bucket> plan_buckets(std::span<const Range> extents, std::span<const size_t> order,
                                 int64_t most, int64_t small = 0);

/// Where slices begin (begins[r] .. begins[r + 1] of the arena is slice r) among the elements of a
/// bucket laid end to end: as many entries as `slice_begins`, from 0 to bucket.size().
std::vector<int64_t> cut_by_slices(const Bucket& bucket, std::span<const int64_t> slice_begins);

/// Equal slices of `size` elements for `count` owners, rounded up to multiples of `block`; the last
/// ones are smaller, or empty when there are fewer blocks than owners. count + 1 entries.
std::vector<int64_t> equal_slices(int64_t size, int64_t count, int64_t block);

}  // namespace stretto::parallel
