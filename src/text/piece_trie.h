#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stretto::text {

/// A set of strings with ids that finds the longest one at the beginning of a text: a radix tree,
/// with at most two nodes a string and one copy of its bytes, however long it is.
class PieceTrie {
 public:
  struct Match {
    int64_t id = -1;  ///< -1 = none
    size_t length = 0;
  };

  PieceTrie() = default;
  /// Empty strings are left out. Where strings are equal, the last one counts.
  explicit PieceTrie(std::vector<std::pair<std::string_view, int64_t>> pieces);

  Match longest(std::string_view text) const;
  /// Whether some piece begins with this byte.
  bool begins(char byte) const { return roots_[static_cast<unsigned char>(byte)] != 0; }

 private:
  /// Children lie side by side, sorted by byte. All strings below a node go on with its label.
  struct Node {
    uint32_t first_child = 0;
    uint32_t label_begin = 0, label_size = 0;  ///< in labels_
    int32_t id = -1;                           ///< of the string that ends behind the label
    uint16_t num_children = 0;
    unsigned char byte = 0;
  };
  uint32_t child(const Node& node, unsigned char byte) const;
  std::string_view label(const Node& node) const {
    return std::string_view(labels_).substr(node.label_begin, node.label_size);
  }

  std::vector<Node> nodes_;
  std::string labels_;
  std::array<uint32_t, 256> roots_{};  ///< the root's children by byte; 0 = none
};

}  // namespace stretto::text
