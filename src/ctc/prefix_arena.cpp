#include "ctc/prefix_arena.h"

#include <algorithm>

namespace stretto::ctc {

PrefixArena::PrefixArena() : prefixes_(1), places_(4096) {}

size_t PrefixArena::place_of(uint32_t parent, int32_t label, uint32_t word) const {
  uint64_t key = (uint64_t{parent} << 32) | static_cast<uint32_t>(label);
  key = (key ^ (uint64_t{word} << 17)) * 0x9E3779B97F4A7C15ULL;
  return static_cast<size_t>(key ^ (key >> 32)) & (places_.size() - 1);
}

uint32_t PrefixArena::find(uint32_t parent, int32_t label, uint32_t word) const {
  size_t at = place_of(parent, label, word);
  for (; places_[at] != 0; at = (at + 1) & (places_.size() - 1)) {
    const Prefix& prefix = prefixes_[places_[at]];
    if (prefix.parent == parent && prefix.label == label && prefix.word == word) return places_[at];
  }
  return kNone;
}

void PrefixArena::index(uint32_t number) {
  const Prefix& prefix = prefixes_[number];
  size_t at = place_of(prefix.parent, prefix.label, prefix.word);
  while (places_[at] != 0) at = (at + 1) & (places_.size() - 1);
  places_[at] = number;
}

uint32_t PrefixArena::add(const Prefix& prefix) {
  prefixes_.push_back(prefix);
  const uint32_t number = size() - 1;
  if (prefixes_.size() * 2 > places_.size()) {
    places_.assign(places_.size() * 2, 0);
    for (uint32_t i = 1; i < number; ++i) index(i);
  }
  index(number);
  return number;
}

void PrefixArena::compact(std::span<uint32_t> kept) {
  std::vector<uint32_t> renumbered(prefixes_.size(), kNone);
  renumbered[0] = 0;
  for (const uint32_t prefix : kept) {
    for (uint32_t at = prefix; renumbered[at] == kNone; at = prefixes_[at].parent)
      renumbered[at] = 0;
  }
  uint32_t count = 1;
  for (uint32_t i = 1; i < prefixes_.size(); ++i) {
    if (renumbered[i] == kNone) continue;
    renumbered[i] = count;
    Prefix prefix = prefixes_[i];
    prefix.parent = renumbered[prefix.parent];
    prefixes_[count++] = prefix;
  }
  prefixes_.resize(count);
  std::fill(places_.begin(), places_.end(), 0U);
  for (uint32_t i = 1; i < count; ++i) index(i);
  for (uint32_t& prefix : kept) prefix = renumbered[prefix];
}

uint32_t PrefixArena::common(uint32_t a, uint32_t b) const {
  while (a != b) {
    uint32_t& deeper = prefixes_[a].depth >= prefixes_[b].depth ? a : b;
    deeper = prefixes_[deeper].parent;
  }
  return a;
}

std::vector<uint32_t> PrefixArena::chain(uint32_t prefix) const {
  std::vector<uint32_t> numbers;
  for (; prefix != 0; prefix = prefixes_[prefix].parent) numbers.push_back(prefix);
  std::reverse(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace stretto::ctc
