#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stretto::decoding {

/// Which tokens an output may have, by the tokens of its source (a vocabulary shortlist: Jean et
/// al. 2015, arXiv:1412.2007; lexical, L'Hostis et al. 2016, arXiv:1610.00072). A step then
/// projects to some hundred classes in the place of a whole vocabulary. Probabilities are among
/// them, so that outputs may differ from those without. It is a function of the source alone.
class Shortlist {
 public:
  /// A pair of tokens that translate each other, and how likely.
  struct Pair {
    int64_t src = 0, tgt = 0;
    double probability = 1;
  };

  /// @param pairs          in any order
  /// @param num_src        tokens of the source's vocabulary
  /// @param num_tgt        tokens of the target's
  /// @param num_common     the first tokens of the target's vocabulary, which are its frequent
  /// ones,
  ///                       are in every list
  /// @param most_of_token  so many of the likeliest pairs of a source token count; equally likely
  ///                       ones by the number of the target token
  /// Throws Error(kBadData) for a pair outside of the vocabularies.
  Shortlist(std::vector<Pair> pairs, int64_t num_src, int64_t num_tgt, int64_t num_common,
            int64_t most_of_token);

  /// Ascending, each once. @param always  further tokens, such as the end of a sentence
  std::vector<int64_t> of(std::span<const int64_t> src, std::span<const int64_t> always) const;

  /// Pairs that are kept.
  int64_t size() const { return static_cast<int64_t>(targets_.size()); }

 private:
  std::vector<int64_t> begins_;   ///< [num_src + 1]: of each source token in targets_
  std::vector<int32_t> targets_;  ///< target tokens
  int64_t num_common_;
};

}  // namespace stretto::decoding
