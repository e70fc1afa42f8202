#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace stretto::text {

/// A set of strings with ids that finds the longest one at the beginning of a text.
class PieceTrie {
 public:
  struct Match {
    int64_t id = -1;  ///< -1 = none
    size_t length = 0;
  };

  PieceTrie() = default;
  /// Empty strings are left out. Of equal strings the last one counts.
  explicit PieceTrie(std::vector<std::pair<std::string_view, int64_t>> pieces);

  Match longest(std::string_view text) const;
  /// Whether some piece begins with this byte.
  bool begins(char byte) const { return roots_[static_cast<unsigned char>(byte)] != 0; }

 private:
  /// Children lie side by side, sorted by byte.
  struct Node {
    uint32_t first_child = 0;
    uint16_t num_children = 0;
    unsigned char byte = 0;
    int32_t id = -1;
  };
  uint32_t child(const Node& node, unsigned char byte) const;

  std::vector<Node> nodes_;
  std::array<uint32_t, 256> roots_{};  ///< the root's children by byte; 0 = none
};

}  // namespace stretto::text
