#include "parallel/buckets.h"

#include <algorithm>

namespace stretto::parallel {
namespace {

class Planner {
 public:
  explicit Planner(int64_t most) : most_(most) {}

  void add(size_t tensor, Range extent, bool from_the_end) {
    if (room() < extent.size() && extent.size() <= most_) close();
    // A large tensor begins a bucket of its own and leaves its rest open for the tensors after it;
    // the rest is on the side where the next tensor lies, so that both can be one range.
    if (extent.size() > most_) close();
    while (extent.size() > most_) {
      put(tensor, from_the_end ? Range{extent.end - most_, extent.end}
                               : Range{extent.begin, extent.begin + most_});
      (from_the_end ? extent.end : extent.begin) += from_the_end ? -most_ : most_;
      close();
    }
    put(tensor, extent);
  }

  void close() {
    if (open_.ranges.empty()) return;
    std::sort(open_.ranges.begin(), open_.ranges.end(),
              [](const Range& a, const Range& b) { return a.begin < b.begin; });
    std::vector<Range> merged;
    for (const Range& range : open_.ranges) {
      if (!merged.empty() && merged.back().end == range.begin) {
        merged.back().end = range.end;
      } else {
        merged.push_back(range);
      }
    }
    open_.ranges = std::move(merged);
    buckets_.push_back(std::move(open_));
    open_ = {};
  }

  std::vector<Bucket> finish() {
    close();
    return std::move(buckets_);
  }

 private:
  int64_t room() const { return most_ - open_.size(); }

  void put(size_t tensor, Range range) {
    if (range.size() == 0) return;
    open_.tensors.push_back(tensor);
    open_.ranges.push_back(range);
  }

  int64_t most_;
  Bucket open_;
  std::vector<Bucket> buckets_;
};

}  // namespace

int64_t Bucket::size() const {
  int64_t total = 0;
  for (const Range& range : ranges) total += range.size();
  return total;
}

std::vector<Bucket> plan_buckets(std::span<const Range> extents, std::span<const size_t> order,
                                 int64_t most, int64_t small) {
  std::vector<size_t> large, together;
  for (const size_t tensor : order) {
    (extents[tensor].size() < small ? together : large).push_back(tensor);
  }
  Planner planner(std::max<int64_t>(most, 1));
  const auto add_all = [&](std::span<const size_t> tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Range& extent = extents[tensors[i]];
      const bool next_is_below =
          i + 1 < tensors.size() && extents[tensors[i + 1]].begin < extent.begin;
      planner.add(tensors[i], extent, next_is_below);
    }
  };
  const std::span<const size_t> all(large);
  const size_t before = large.size() - (large.empty() || together.empty() ? 0 : 1);
  add_all(all.first(before));
  if (!together.empty()) {
    planner.close();
    add_all(together);
    planner.close();
  }
  add_all(all.subspan(before));
  return planner.finish();
}

std::vector<int64_t> cut_by_slices(const Bucket& bucket, std::span<const int64_t> slice_begins) {
  std::vector<int64_t> begins;
  for (const int64_t begin : slice_begins) {
    int64_t before = 0;  // elements of the bucket below the slice
    for (const Range& range : bucket.ranges) {
      before += std::clamp(begin, range.begin, range.end) - range.begin;
    }
    begins.push_back(before);
  }
  return begins;
}

std::vector<int64_t> equal_slices(int64_t size, int64_t count, int64_t block) {
  const int64_t blocks = (size + block - 1) / block;
  const int64_t each = (blocks + count - 1) / count * block;
  std::vector<int64_t> begins;
  for (int64_t r = 0; r <= count; ++r) begins.push_back(std::min(size, r * each));
  return begins;
}

}  // namespace stretto::parallel
