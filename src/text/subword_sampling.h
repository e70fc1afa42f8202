#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer.h"

namespace stretto::text {

/// Draws other segmentations of a sentence, for training: sub-word regularisation.
///
/// A sentence comes as the ids of its best segmentation. Their pieces spell the normalised text,
/// which is cut anew, so that no text has to be kept. Ids that are no ordinary pieces (`<unk>`,
/// bytes, symbols that a user defined) stay where they are.
///
///  - bpe: BPE-dropout (Provilkov et al. 2020, arXiv:1910.13267, algorithm 1). A word begins as
///    characters; at each step every possible merge is left out with probability `strength`, and
///    the best of the others is made, until none is left.
///  - unigram: sub-word regularisation (Kudo 2018, arXiv:1804.10959, section 3.3) over all
///    segmentations: one is drawn with a probability in proportion to P(segmentation)^strength, by
///    sums forward and draws backward. 1 draws from the model, less is more uniform.
///
/// A word with a character that has no piece of its own keeps its segmentation where a draw would
/// leave that character alone: no draw makes unknown tokens. Safe to use from several threads.
class SubwordSampler {
 public:
  /// @param strength  in (0, 1]
  SubwordSampler(const SubwordModel& model, double strength);

  /// A segmentation that is a function of ids and key.
  /// @param ids  without end-of-sentence
  std::vector<int64_t> sample(std::span<const int64_t> ids, uint64_t key) const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct Entry {
    int64_t id;
    double score;
  };
  struct Word;
  const Entry* find(std::string_view piece) const;
  bool merge(Word& word) const;
  bool walk(Word& word) const;

  SubwordModel::Kind kind_;
  double strength_;
  std::unordered_map<std::string, Entry, Hash, std::equal_to<>> entries_;
  std::unordered_map<int64_t, std::string> texts_;
  size_t longest_ = 0;           ///< bytes of a piece
  bool words_are_apart_ = true;  ///< no piece goes on behind the mark of a word's beginning
};

/// The sampler of one side; null where `strength` is 0. Throws Error(kUsage) for a tokenizer that
/// is neither bpe nor unigram.
/// @param key  of the configuration, for the message
std::shared_ptr<const SubwordSampler> make_sampler(const Tokenizer& tokenizer, double strength,
                                                   const std::string& key);

}  // namespace stretto::text
