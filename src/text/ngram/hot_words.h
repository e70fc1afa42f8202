#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stretto::text {

/// Words and phrases that a text is expected to have, as an automaton over its bytes (Aho and
/// Corasick 1975). A phrase counts between ends of words. A part of one counts by its share, and no
/// longer where the text goes on otherwise.
class HotWords {
 public:
  HotWords() = default;
  /// Throws Error(kUsage) for an empty phrase.
  HotWords(std::span<const std::string> phrases, double weight);

  bool empty() const { return nodes_.size() <= 1; }
  /// The state in front of a text.
  uint32_t start() const { return start_; }

  struct Step {
    uint32_t state = 0;
    float gained = 0;  ///< change of the text's bonus; below 0 where a part did not go on
  };
  /// @param bytes  the next of the text; " " stands between words and at the end
  Step next(uint32_t state, std::string_view bytes) const;
  /// What a phrase has gained that is under way: a text that ends here loses it.
  float pending(uint32_t state) const { return nodes_[state].partial; }

 private:
  struct Node {
    std::vector<std::pair<uint8_t, uint32_t>> children;  ///< in the order of bytes
    uint32_t fail = 0;
    float partial = 0;   ///< what the phrase that is under way has gained
    float complete = 0;  ///< what phrases gain that end here
  };
  uint32_t step(uint32_t state, uint8_t byte) const;

  std::vector<Node> nodes_ = {Node{}};
  uint32_t start_ = 0;
};

}  // namespace stretto::text
