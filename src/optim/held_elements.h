#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

/// Which elements of an arena a flat buffer has. No libtorch.
namespace stretto::optim {

/// Elements [begin, end) of the arena: all of it, or the part that one process steps.
struct Slice {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

/// The elements of the arena for which there is a state: all of them, or stretches, which stand one
/// behind the other in a buffer. A slice of the arena is a slice of the buffer too.
class HeldElements {
 public:
  HeldElements() = default;  ///< all
  /// @param stretches  in order, none of them in another one; empty = there is no state
  explicit HeldElements(std::vector<Slice> stretches) : stretches_(std::move(stretches)) {}

  bool is_all() const { return !stretches_.has_value(); }
  /// Throws std::bad_optional_access where it is all.
  const std::vector<Slice>& stretches() const { return stretches_.value(); }

  /// How many of the arena's first `end` elements there are: where the next one stands.
  int64_t count_before(int64_t end) const;
  /// The elements of a slice as the buffer numbers them.
  Slice place_of(Slice slice) const { return {count_before(slice.begin), count_before(slice.end)}; }
  /// Whether the whole slice is there.
  bool has(Slice slice) const { return place_of(slice).size() == slice.size(); }

 private:
  std::optional<std::vector<Slice>> stretches_;
};

}  // namespace stretto::optim
