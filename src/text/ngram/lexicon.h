#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::text {

/// The labels that spell a word; empty = it cannot be spelled.
using Speller = std::function<std::vector<int32_t>(std::string_view word)>;

/// A word and how it is spelled in labels. A word may have several spellings, and a spelling
/// several words.
struct LexiconEntry {
  std::string word;
  std::vector<int32_t> labels;
};

/// Reads lines of a word, and behind a tab or spaces its labels by their names, as flashlight and
/// torchaudio write them. A word alone is spelled by `spell`.
/// @param label_names  [labels], such as "a", "|", "▁the"
/// @param left_out     counts words that cannot be spelled
/// Throws Error(kUsage) without a file, Error(kBadData) with the line of a label that is unknown,
/// and for a file without a word.
std::vector<LexiconEntry> read_lexicon(const std::filesystem::path& path,
                                       std::span<const std::string> label_names,
                                       const Speller& spell, int64_t& left_out);
/// The same of a text. @param place  the name of it in messages
std::vector<LexiconEntry> parse_lexicon(std::string_view text, const std::string& place,
                                        std::span<const std::string> label_names,
                                        const Speller& spell, int64_t& left_out);

/// All words of a lexicon as a trie of their labels, in four flat arrays. Every node has the best
/// score of a word below it, so that a search knows early what the language model will say.
class LexiconTrie {
 public:
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNone = 0xFFFFFFFF;

  struct Child {
    int32_t label = 0;
    uint32_t node = 0;
  };

  LexiconTrie() = default;
  /// @param scores  [entries]: of each word, such as its unigram; what is smeared is their maximum
  LexiconTrie(std::span<const LexiconEntry> entries, std::span<const float> scores);

  /// Children in the order of their labels.
  std::span<const Child> children(uint32_t node) const {
    return {children_.data() + nodes_[node].first_child, nodes_[node].num_children};
  }
  /// kNone where there is no such child.
  uint32_t child(uint32_t node, int32_t label) const;
  /// Entries that end here, by their places in what the trie was made of.
  std::span<const uint32_t> words(uint32_t node) const {
    return {words_.data() + nodes_[node].first_word, nodes_[node].num_words};
  }
  float best_below(uint32_t node) const { return nodes_[node].best; }
  size_t num_nodes() const { return nodes_.size(); }

 private:
  struct Node {
    uint32_t first_child = 0, num_children = 0, first_word = 0, num_words = 0;
    float best = 0;
  };
  std::vector<Node> nodes_ = {Node{}};
  std::vector<Child> children_;
  std::vector<uint32_t> words_;
};

}  // namespace stretto::text
