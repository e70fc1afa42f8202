#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace stretto::ctc {

/// Stands for a prefix, word, row or slot that there is none of.
inline constexpr uint32_t kNone = 0xFFFFFFFF;

/// Labels that a text may begin with: those of the parent, and one more. All that does not depend
/// on frames is computed once, when the prefix is made.
struct Prefix {
  uint32_t parent = kNone;
  int32_t label = -1;
  uint32_t word = kNone;  ///< of the lexicon: the word that ended in front of the label, or with it
  uint32_t depth = 0;     ///< labels
  uint32_t trie = 0;      ///< place in the lexicon's trie
  uint32_t lm_state = 0;  ///< behind the last token of the language model
  uint32_t hot_state = 0;
  int32_t begin_frame = 0;  ///< of the label, where most probability came to it
  int32_t last_frame = 0;
  uint32_t ends = kNone;  ///< scores of words that may end here, see Beam
  uint32_t row = kNone;   ///< scores of labels behind it, see Beam
  uint32_t slot = kNone;  ///< place among the prefixes that go on
  float early = 0;        ///< what the word that is under way will add at most
  double bonus = 0;       ///< of all complete tokens and of hot words
  double lm_log_prob = 0;
  double arrival = -std::numeric_limits<double>::infinity();  ///< most log-probability so far
};

/// All prefixes of a search that may still count, in one array. A parent stands in front of its
/// children. Prefix 0 is the empty one.
class PrefixArena {
 public:
  PrefixArena();

  uint32_t size() const { return static_cast<uint32_t>(prefixes_.size()); }
  Prefix& operator[](uint32_t number) { return prefixes_[number]; }
  const Prefix& operator[](uint32_t number) const { return prefixes_[number]; }

  /// kNone where there is no such prefix.
  uint32_t find(uint32_t parent, int32_t label, uint32_t word) const;
  /// Adds one that is not there.
  uint32_t add(const Prefix& prefix);
  /// Forgets all but these and those that they begin with. Replaces each number by the new one.
  void compact(std::span<uint32_t> kept);

  /// The longest prefix that both begin with.
  uint32_t common(uint32_t a, uint32_t b) const;
  /// From the first label to the last one of a prefix.
  std::vector<uint32_t> chain(uint32_t prefix) const;

 private:
  size_t place_of(uint32_t parent, int32_t label, uint32_t word) const;
  void index(uint32_t number);

  std::vector<Prefix> prefixes_;
  std::vector<uint32_t> places_;  ///< hash table: number; 0 = empty, since 0 is nobody's child
};

}  // namespace stretto::ctc
