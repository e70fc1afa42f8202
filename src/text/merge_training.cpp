#include "text/merge_training.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <unordered_map>

#include "text/code_points.h"

namespace stretto::text {
namespace {

using Symbol = uint32_t;

/// Two neighbours; ordered as their ids are.
uint64_t pair_key(Symbol left, Symbol right) {
  return (static_cast<uint64_t>(left) << 32) | right;
}
Symbol left_of(uint64_t pair) {
  return static_cast<Symbol>(pair >> 32);
}
Symbol right_of(uint64_t pair) {
  return static_cast<Symbol>(pair);
}

struct CountedWord {
  std::vector<Symbol> symbols;
  int64_t count = 0;
};

class MergeTrainer {
 public:
  MergeTrainer(const WordCounts& words, const MergeTraining& options) : options_(options) {
    for (const std::string& special : options.specials) add_piece(special);
    const auto alphabet = choose_alphabet(words);
    for (const char32_t c : alphabet) add_piece(utf8(c));
    spell(words, alphabet);
  }

  TrainedMerges train() {
    count_pairs();
    while (std::ssize(pieces_) < options_.vocab_size && !queue_.empty()) {
      Candidate top = pop();
      const int64_t count = counts_[top.pair];
      if (top.count != count) {
        top.count = count;
        push(std::move(top));
        continue;
      }
      if (count < 1 || count < options_.min_frequency) break;
      if (is_short(top.pair)) join(top);
    }
    return result();
  }

 private:
  struct Candidate {
    int64_t count = 0;
    uint64_t pair = 0;
    std::vector<uint32_t> words;  ///< where the pair is to be joined
    bool operator<(const Candidate& other) const {
      return std::tie(count, other.pair) < std::tie(other.count, pair);
    }
  };

  /// Whether the joined piece is one that readers of tokenizers take.
  bool is_short(uint64_t pair) const {
    return pieces_[left_of(pair)].size() + pieces_[right_of(pair)].size() <=
           options_.max_piece_bytes;
  }

  static std::string utf8(char32_t c) {
    std::string text;
    append_utf8(text, c);
    return text;
  }

  Symbol add_piece(const std::string& piece) {
    const auto [found, is_new] = ids_.try_emplace(piece, static_cast<Symbol>(pieces_.size()));
    if (is_new) pieces_.push_back(piece);
    return found->second;
  }

  std::set<char32_t> choose_alphabet(const WordCounts& words) const {
    std::map<char32_t, int64_t> counts;
    for (const auto& [word, count] : words) {
      for (size_t at = 0; at < word.size();) counts[next_code_point(word, at)] += count;
    }
    for (const std::string& c : options_.initial_alphabet) {
      size_t at = 0;
      counts[next_code_point(c, at)] = std::numeric_limits<int64_t>::max();
    }
    std::vector<std::pair<char32_t, int64_t>> kept(counts.begin(), counts.end());
    if (options_.limit_alphabet > 0 && std::ssize(kept) > options_.limit_alphabet) {
      std::stable_sort(kept.begin(), kept.end(),
                       [](const auto& a, const auto& b) { return a.second > b.second; });
      kept.resize(static_cast<size_t>(options_.limit_alphabet));
    }
    std::set<char32_t> alphabet;
    for (const auto& [c, count] : kept) alphabet.insert(c);
    return alphabet;
  }

  /// Characters outside of the alphabet are left out of their words.
  void spell(const WordCounts& words, const std::set<char32_t>& alphabet) {
    std::set<char32_t> continuing;
    for (const auto& [word, count] : words) {
      for (size_t at = 0; at < word.size();) {
        const bool is_first = at == 0;
        const char32_t c = next_code_point(word, at);
        if (!is_first && alphabet.contains(c)) continuing.insert(c);
      }
    }
    for (const char32_t c : continuing) add_piece(options_.continuing_prefix + utf8(c));
    for (const auto& [word, count] : words) {
      CountedWord spelt{.symbols = {}, .count = count};
      for (size_t at = 0; at < word.size();) {
        const bool is_first = at == 0;
        const char32_t c = next_code_point(word, at);
        if (!alphabet.contains(c)) continue;
        spelt.symbols.push_back(ids_.at((is_first ? "" : options_.continuing_prefix) + utf8(c)));
      }
      words_.push_back(std::move(spelt));
    }
  }

  void count_pairs() {
    for (uint32_t i = 0; i < words_.size(); ++i) {
      const auto& symbols = words_[i].symbols;
      for (size_t k = 1; k < symbols.size(); ++k) {
        change(pair_key(symbols[k - 1], symbols[k]), i, 1);
      }
    }
    push_changed();
  }

  void change(uint64_t pair, uint32_t word, int64_t by) {
    counts_[pair] += by * words_[word].count;
    if (by < 0) return;
    auto& places = changed_[pair];
    if (places.empty() || places.back() != word) places.push_back(word);
  }

  void push_changed() {
    for (auto& [pair, words] : changed_) {
      if (const int64_t count = counts_[pair]; count > 0) push({count, pair, std::move(words)});
    }
    changed_.clear();
  }

  void push(Candidate candidate) {
    queue_.push_back(std::move(candidate));
    std::push_heap(queue_.begin(), queue_.end());
  }

  Candidate pop() {
    std::pop_heap(queue_.begin(), queue_.end());
    Candidate top = std::move(queue_.back());
    queue_.pop_back();
    return top;
  }

  void join(const Candidate& chosen) {
    const std::string& left = pieces_[left_of(chosen.pair)];
    const std::string& right = pieces_[right_of(chosen.pair)];
    const bool continues = right.starts_with(options_.continuing_prefix);
    const Symbol joined =
        add_piece(left + right.substr(continues ? options_.continuing_prefix.size() : 0));
    merges_.push_back(chosen.pair);
    for (const uint32_t word : chosen.words) join_in(word, chosen.pair, joined);
    push_changed();
  }

  void join_in(uint32_t word, uint64_t pair, Symbol joined) {
    const std::vector<Symbol> before = std::move(words_[word].symbols);
    std::vector<Symbol> after;
    for (size_t i = 0; i < before.size(); ++i) {
      if (i + 1 == before.size() || pair_key(before[i], before[i + 1]) != pair) {
        after.push_back(before[i]);
        continue;
      }
      if (!after.empty()) {
        change(pair_key(after.back(), before[i]), word, -1);
        change(pair_key(after.back(), joined), word, 1);
      }
      ++i;
      if (i + 1 < before.size()) {
        change(pair_key(before[i], before[i + 1]), word, -1);
        change(pair_key(joined, before[i + 1]), word, 1);
      }
      after.push_back(joined);
    }
    words_[word].symbols = std::move(after);
  }

  TrainedMerges result() const {
    TrainedMerges trained;
    for (size_t id = 0; id < pieces_.size(); ++id) {
      trained.vocab.emplace_back(pieces_[id], static_cast<int64_t>(id));
    }
    // A pair that formed anew was joined again; its last rank counts.
    std::unordered_map<uint64_t, size_t> last;
    for (size_t i = 0; i < merges_.size(); ++i) last[merges_[i]] = i;
    for (size_t i = 0; i < merges_.size(); ++i) {
      if (last[merges_[i]] != i) continue;
      trained.merges.emplace_back(pieces_[left_of(merges_[i])], pieces_[right_of(merges_[i])]);
    }
    return trained;
  }

  const MergeTraining& options_;
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, Symbol> ids_;
  std::vector<CountedWord> words_;
  std::unordered_map<uint64_t, int64_t> counts_;
  std::map<uint64_t, std::vector<uint32_t>> changed_;  ///< pairs that formed since the last push
  std::vector<Candidate> queue_;                       ///< a heap
  std::vector<uint64_t> merges_;
};

}  // namespace

TrainedMerges train_merges(const WordCounts& words, const MergeTraining& options) {
  return MergeTrainer(words, options).train();
}

}  // namespace stretto::text
