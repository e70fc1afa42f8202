#include "text/piece_trie.h"

#include <algorithm>

namespace stretto::text {
namespace {

size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + std::ssize(a.substr(0, b.size())), b.begin()).first -
      a.begin());
}

}  // namespace

PieceTrie::PieceTrie(std::vector<std::pair<std::string_view, int64_t>> pieces) {
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  // A node stands for the sorted pieces [begin, end) that share their first `depth` bytes at least.
  struct Range {
    size_t begin, end, depth;
  };
  std::vector<Range> ranges{{0, pieces.size(), 0}};
  nodes_.emplace_back();
  for (size_t node = 0; node < ranges.size(); ++node) {
    auto [begin, end, depth] = ranges[node];
    if (node > 0) {  // sorted: what the first and the last share, all of them share
      const size_t shared = common_prefix(pieces[begin].first, pieces[end - 1].first);
      nodes_[node].label_begin = static_cast<uint32_t>(labels_.size());
      nodes_[node].label_size = static_cast<uint32_t>(shared - depth);
      labels_ += pieces[begin].first.substr(depth, shared - depth);
      depth = shared;
    }
    for (; begin < end && pieces[begin].first.size() == depth; ++begin) {
      if (depth > 0) nodes_[node].id = static_cast<int32_t>(pieces[begin].second);
    }
    nodes_[node].first_child = static_cast<uint32_t>(nodes_.size());
    while (begin < end) {
      const char byte = pieces[begin].first[depth];
      size_t next = begin + 1;
      while (next < end && pieces[next].first[depth] == byte) ++next;
      ++nodes_[node].num_children;
      ranges.push_back({begin, next, depth + 1});
      nodes_.push_back({.byte = static_cast<unsigned char>(byte)});
      begin = next;
    }
  }
  for (uint32_t i = 0; i < nodes_[0].num_children; ++i) {
    const uint32_t root = nodes_[0].first_child + i;
    roots_[nodes_[root].byte] = root;
  }
}

uint32_t PieceTrie::child(const Node& node, unsigned char byte) const {
  const auto begin = nodes_.begin() + node.first_child, end = begin + node.num_children;
  const auto found = std::lower_bound(
      begin, end, byte, [](const Node& at, unsigned char wanted) { return at.byte < wanted; });
  return found != end && found->byte == byte ? static_cast<uint32_t>(found - nodes_.begin()) : 0;
}

PieceTrie::Match PieceTrie::longest(std::string_view text) const {
  Match best;
  if (text.empty()) return best;
  uint32_t node = roots_[static_cast<unsigned char>(text[0])];
  for (size_t depth = 1; node != 0; ++depth) {
    const Node& at = nodes_[node];
    if (at.label_size > 0) {
      if (!text.substr(depth).starts_with(label(at))) break;
      depth += at.label_size;
    }
    if (at.id >= 0) best = {at.id, depth};
    if (depth == text.size()) break;
    node = child(at, static_cast<unsigned char>(text[depth]));
  }
  return best;
}

}  // namespace stretto::text
