#include "decoding/lexicon.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace stretto::decoding {
namespace {

uint64_t key_of(int64_t src, int64_t tgt) {
  return (static_cast<uint64_t>(src) << 32) | static_cast<uint64_t>(tgt);
}

/// All pairs of tokens that stand in one pair of sentences, each once and in order, with a number
/// for each. The empty word is the source token behind all others.
class TokenPairs {
 public:
  /// To be called for all, in any order, before finish().
  void add(int64_t src, int64_t tgt) {
    keys_.push_back(key_of(src, tgt));
    if (keys_.size() >= limit_) shrink();
  }
  void finish(int64_t num_src) {
    shrink();
    begins_.assign(static_cast<size_t>(num_src) + 1, 0);
    for (const uint64_t key : keys_) ++begins_[static_cast<size_t>(key >> 32) + 1];
    for (size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
  }

  size_t size() const { return keys_.size(); }
  size_t begin_of(int64_t src) const { return begins_[static_cast<size_t>(src)]; }
  size_t end_of(int64_t src) const { return begins_[static_cast<size_t>(src) + 1]; }
  int64_t target(size_t place) const { return static_cast<int64_t>(keys_[place] & 0xffffffff); }
  /// Of a pair that was added.
  size_t place_of(int64_t src, int64_t tgt) const {
    const uint64_t key = key_of(src, tgt);
    const auto first = keys_.begin();
    return static_cast<size_t>(std::lower_bound(first + static_cast<std::ptrdiff_t>(begin_of(src)),
                                                first + static_cast<std::ptrdiff_t>(end_of(src)),
                                                key) -
                               first);
  }

 private:
  void shrink() {
    std::ranges::sort(keys_);
    const auto rest = std::ranges::unique(keys_);
    keys_.erase(rest.begin(), rest.end());
    limit_ = std::max(kLeast, 2 * keys_.size());
  }

  static constexpr size_t kLeast = size_t{1} << 22;
  std::vector<uint64_t> keys_;
  std::vector<size_t> begins_;  // [num_src + 1]: of each source token
  size_t limit_ = kLeast;
};

/// Makes probabilities of the sums of each source token.
void normalise(const TokenPairs& pairs, int64_t num_src, std::vector<double>& sums) {
  for (int64_t src = 0; src < num_src; ++src) {
    double total = 0;
    for (size_t i = pairs.begin_of(src); i < pairs.end_of(src); ++i) total += sums[i];
    if (total <= 0) continue;
    for (size_t i = pairs.begin_of(src); i < pairs.end_of(src); ++i) sums[i] /= total;
  }
}

/// Which tokens of a source a target token is expected to come from: adds its shares to `sums`.
void share_out(const TokenPairs& pairs, const std::vector<int64_t>& source, int64_t target,
               const std::vector<double>& probabilities, std::vector<double>& sums) {
  std::vector<size_t> places;
  double total = 0;
  for (const int64_t from : source) {
    places.push_back(pairs.place_of(from, target));
    total += probabilities[places.back()];
  }
  if (total <= 0) return;
  for (const size_t place : places) sums[place] += probabilities[place] / total;
}

std::vector<Shortlist::Pair> likeliest_pairs(const TokenPairs& pairs, int64_t src,
                                             const std::vector<double>& probabilities,
                                             const LexiconOptions& options) {
  std::vector<Shortlist::Pair> own;
  for (size_t i = pairs.begin_of(src); i < pairs.end_of(src); ++i) {
    if (probabilities[i] < options.least) continue;
    own.push_back({.src = src, .tgt = pairs.target(i), .probability = probabilities[i]});
  }
  std::ranges::stable_sort(own, [](const Shortlist::Pair& a, const Shortlist::Pair& b) {
    return a.probability > b.probability;
  });
  if (std::ssize(own) > options.most_of_token) {
    own.resize(static_cast<size_t>(options.most_of_token));
  }
  return own;
}

}  // namespace

void Lexicon::add(std::span<const int64_t> src, std::span<const int64_t> tgt) {
  src_.insert(src_.end(), src.begin(), src.end());
  tgt_.insert(tgt_.end(), tgt.begin(), tgt.end());
  src_ends_.push_back(std::ssize(src_));
  tgt_ends_.push_back(std::ssize(tgt_));
  for (const int64_t token : src) num_src_ = std::max(num_src_, token + 1);
}

template <class Look>
void Lexicon::for_each_sentence(const Look& look) const {
  int64_t src = 0, tgt = 0;
  for (size_t i = 0; i < src_ends_.size(); ++i) {
    std::vector<int64_t> source(src_.begin() + src, src_.begin() + src_ends_[i]);
    source.push_back(num_src_);  // the empty word
    look(source, std::span(tgt_).subspan(static_cast<size_t>(tgt),
                                         static_cast<size_t>(tgt_ends_[i] - tgt)));
    src = src_ends_[i];
    tgt = tgt_ends_[i];
  }
}

std::vector<Shortlist::Pair> Lexicon::pairs(const LexiconOptions& options) const {
  TokenPairs all;
  for_each_sentence([&](const std::vector<int64_t>& source, std::span<const int64_t> target) {
    for (const int64_t from : source) {
      for (const int64_t to : target) all.add(from, to);
    }
  });
  all.finish(num_src_ + 1);
  std::vector<double> probabilities(all.size(), 1);
  normalise(all, num_src_ + 1, probabilities);
  for (int64_t k = 0; k < options.iterations; ++k) {
    std::vector<double> sums(all.size(), 0);
    for_each_sentence([&](const std::vector<int64_t>& source, std::span<const int64_t> target) {
      for (const int64_t to : target) share_out(all, source, to, probabilities, sums);
    });
    normalise(all, num_src_ + 1, sums);
    probabilities = std::move(sums);
  }
  std::vector<Shortlist::Pair> found;
  for (int64_t src = 0; src < num_src_; ++src) {
    const auto own = likeliest_pairs(all, src, probabilities, options);
    found.insert(found.end(), own.begin(), own.end());
  }
  return found;
}

}  // namespace stretto::decoding
