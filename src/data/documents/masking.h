#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/tokenizer.h"

namespace stretto::data {

/// Which tokens of a text are hidden, to be found (Devlin et al. 2019, section 3.1).
struct MaskRules {
  double probability = 0.15;  ///< share of the tokens that are chosen
  double mask = 0.8;          ///< share of these that become the mask token
  double random = 0.1;        ///< share of these that become another token; the rest is kept
  bool whole_words = false;   ///< all pieces of a word are chosen, or none
};

/// Chooses tokens and hides them. Safe to use from several threads.
///
/// From n tokens that are not special (padding, unknown, beginning, separator, mask, and those of
/// the tokenizer's template), max(1, floor(p n + u)) are chosen, where u is uniform in [0, 1): on
/// average p n. With whole words, words are drawn in a random order; one that would exceed the
/// number is passed over, unless it is the first. Each chosen token becomes the mask, a random one
/// that is no special, or stays, by a draw of its own.
class Masker {
 public:
  /// Throws Error(kUsage) where the tokenizer has no mask token.
  Masker(const text::Tokenizer& tokenizer, const MaskRules& rules);

  /// Masks one sequence in place: a function of its ids and `key`.
  /// @param positions, labels  of the chosen tokens, ascending, are appended: places in `ids`, and
  ///                           the ids that were there
  void mask(std::span<int64_t> ids, uint64_t key, std::vector<int64_t>& positions,
            std::vector<int64_t>& labels) const;

 private:
  /// Tokens that are chosen together.
  struct Unit {
    uint32_t begin = 0, end = 0;
  };
  std::vector<Unit> units_of(std::span<const int64_t> ids) const;
  bool is_special(int64_t id) const { return is_special_[static_cast<size_t>(id)]; }

  MaskRules rules_;
  int64_t mask_id_;
  std::vector<bool> is_special_;      ///< [ids]
  std::vector<bool> continues_word_;  ///< [ids]; empty unless whole words are chosen
  std::vector<int64_t> words_;        ///< ids that are no specials
};

}  // namespace stretto::data
