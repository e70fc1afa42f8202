#include "text/ngram/hot_words.h"

#include <algorithm>
#include <deque>
#include <limits>

#include "base/error.h"
#include "base/text.h"

namespace stretto::text {
namespace {

/// Between ends of words, with one space where there are several.
std::string as_pattern(const std::string& phrase) {
  const std::vector<std::string> words = split_words(phrase);
  if (words.empty()) {
    throw Error(ExitCode::kUsage, "decode.hot_words: a phrase is empty",
                "leave it out, or write the word");
  }
  return " " + join(words, " ") + " ";
}

}  // namespace

HotWords::HotWords(std::span<const std::string> phrases, double weight) {
  // The shortest pattern through each node decides what a part of it has gained.
  std::vector<size_t> depth = {0}, shortest = {0};
  for (const std::string& phrase : phrases) {
    const std::string pattern = as_pattern(phrase);
    uint32_t at = 0;
    for (const char c : pattern) {
      const auto byte = static_cast<uint8_t>(c);
      auto& children = nodes_[at].children;
      const auto place =
          std::lower_bound(children.begin(), children.end(), byte,
                           [](const auto& child, uint8_t wanted) { return child.first < wanted; });
      if (place != children.end() && place->first == byte) {
        at = place->second;
      } else {
        const auto node = static_cast<uint32_t>(nodes_.size());
        children.insert(place, {byte, node});
        depth.push_back(depth[at] + 1);
        shortest.push_back(std::numeric_limits<size_t>::max());
        nodes_.emplace_back();
        at = node;
      }
      // The last node of a pattern is no part that is under way.
      if (depth[at] < pattern.size()) shortest[at] = std::min(shortest[at], pattern.size());
    }
    nodes_[at].complete = static_cast<float>(weight);
  }
  std::deque<uint32_t> waiting = {0};
  while (!waiting.empty()) {
    const uint32_t node = waiting.front();
    waiting.pop_front();
    for (const auto& [byte, child] : nodes_[node].children) {
      nodes_[child].fail = node == 0 ? 0 : step(nodes_[node].fail, byte);
      const Node& fail = nodes_[nodes_[child].fail];
      nodes_[child].complete += fail.complete;
      float own = 0;
      if (shortest[child] != std::numeric_limits<size_t>::max()) {
        // The space in front is no part of the phrase, and that behind it completes it.
        own = static_cast<float>(weight * static_cast<double>(depth[child] - 1) /
                                 static_cast<double>(shortest[child] - 1));
      }
      nodes_[child].partial =
          weight < 0 ? std::min(own, fail.partial) : std::max(own, fail.partial);
      waiting.push_back(child);
    }
  }
  start_ = step(0, static_cast<uint8_t>(' '));
}

uint32_t HotWords::step(uint32_t state, uint8_t byte) const {
  for (;;) {
    const auto& children = nodes_[state].children;
    const auto place =
        std::lower_bound(children.begin(), children.end(), byte,
                         [](const auto& child, uint8_t wanted) { return child.first < wanted; });
    if (place != children.end() && place->first == byte) return place->second;
    if (state == 0) return 0;
    state = nodes_[state].fail;
  }
}

HotWords::Step HotWords::next(uint32_t state, std::string_view bytes) const {
  Step step_made{state, 0};
  for (const char c : bytes) {
    const uint32_t before = step_made.state;
    step_made.state = step(before, static_cast<uint8_t>(c));
    step_made.gained +=
        nodes_[step_made.state].complete + nodes_[step_made.state].partial - nodes_[before].partial;
  }
  return step_made;
}

}  // namespace stretto::text
