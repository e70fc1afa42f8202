#include "text/subword_sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "text/subwords.h"

namespace stretto::text {
namespace {

/// Where each character begins, and the end.
std::vector<size_t> characters_of(std::string_view text) {
  std::vector<size_t> begins;
  for (size_t at = 0; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0u) != 0x80u) begins.push_back(at);
  }
  begins.push_back(text.size());
  return begins;
}

}  // namespace

/// A stretch of ordinary pieces that no piece crosses, and what is drawn of it.
struct SubwordSampler::Word {
  std::string text;
  RandomStream& random;
  std::vector<int64_t> drawn = {};
};

SubwordSampler::SubwordSampler(const SubwordModel& model, double strength)
    : kind_(model.kind), strength_(strength) {
  for (const auto& [text, score, id] : model.pieces) {
    if (text.empty()) continue;
    entries_.emplace(text, Entry{.id = id, .score = score});
    texts_.emplace(id, text);
    longest_ = std::max(longest_, text.size());
    if (text.rfind(kWordStart) != 0 && text.rfind(kWordStart) != std::string::npos) {
      words_are_apart_ = false;
    }
  }
}

const SubwordSampler::Entry* SubwordSampler::find(std::string_view piece) const {
  if (piece.size() > longest_) return nullptr;
  const auto found = entries_.find(piece);
  return found == entries_.end() ? nullptr : &found->second;
}

// BPE-dropout.
bool SubwordSampler::merge(Word& word) const {
  const std::string_view text = word.text;
  std::vector<size_t> begins = characters_of(text);
  const auto between = [&](size_t from, size_t to) {
    return text.substr(begins[from], begins[to] - begins[from]);
  };
  while (begins.size() > 2) {
    size_t best = 0;  // the boundary that goes; 0 = none
    double highest = -std::numeric_limits<double>::infinity();
    for (size_t i = 1; i + 1 < begins.size(); ++i) {
      const Entry* merged = find(between(i - 1, i + 1));
      if (merged == nullptr || word.random.uniform() < strength_) continue;
      if (merged->score <= highest) continue;  // of equal ones the first
      highest = merged->score;
      best = i;
    }
    if (best == 0) break;
    begins.erase(begins.begin() + static_cast<std::ptrdiff_t>(best));
  }
  for (size_t i = 0; i + 1 < begins.size(); ++i) {
    const Entry* piece = find(between(i, i + 1));
    if (piece == nullptr) return false;
    word.drawn.push_back(piece->id);
  }
  return true;
}

// Sums of the powers of all segmentations up to each character, then a draw from the end.
bool SubwordSampler::walk(Word& word) const {
  const std::string_view text = word.text;
  const std::vector<size_t> begins = characters_of(text);
  const size_t end = begins.size() - 1;
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  std::vector<double> sums(begins.size(), kNever);  // logarithms
  sums[0] = 0;
  // use(from, logarithm of what the piece between adds, piece), from the nearest beginning on
  const auto each_piece = [&](size_t to, const auto& use) {
    for (size_t from = to; from-- > 0 && begins[to] - begins[from] <= longest_;) {
      if (sums[from] == kNever) continue;
      const Entry* piece = find(text.substr(begins[from], begins[to] - begins[from]));
      if (piece != nullptr) use(from, sums[from] + strength_ * piece->score, *piece);
    }
  };
  for (size_t to = 1; to <= end; ++to) {
    each_piece(to, [&](size_t, double way, const Entry&) {
      const double high = std::max(sums[to], way), low = std::min(sums[to], way);
      sums[to] = high + std::log1p(std::exp(low - high));
    });
  }
  if (sums[end] == kNever) return false;
  for (size_t to = end; to > 0;) {
    double left = word.random.uniform();
    size_t chosen = to;
    int64_t id = -1;
    each_piece(to, [&](size_t from, double way, const Entry& piece) {
      if (chosen != to && left < 0) return;
      left -= std::exp(way - sums[to]);
      chosen = from;  // the last one, should the shares not quite come to one
      id = piece.id;
    });
    word.drawn.push_back(id);
    to = chosen;
  }
  std::reverse(word.drawn.begin(), word.drawn.end());
  return true;
}

std::vector<int64_t> SubwordSampler::sample(std::span<const int64_t> ids, uint64_t key) const {
  RandomStream random(key);
  std::vector<int64_t> out;
  for (size_t begin = 0; begin < ids.size();) {
    auto piece = texts_.find(ids[begin]);
    if (piece == texts_.end()) {
      out.push_back(ids[begin++]);
      continue;
    }
    Word word{.text = piece->second, .random = random};
    size_t end = begin + 1;
    for (; end < ids.size(); ++end) {
      piece = texts_.find(ids[end]);
      if (piece == texts_.end()) break;
      if (words_are_apart_ && piece->second.starts_with(kWordStart)) break;
      word.text += piece->second;
    }
    const bool is_known = kind_ == SubwordModel::Kind::kBpe ? merge(word) : walk(word);
    if (is_known) {
      out.insert(out.end(), word.drawn.begin(), word.drawn.end());
    } else {
      out.insert(out.end(), ids.begin() + static_cast<std::ptrdiff_t>(begin),
                 ids.begin() + static_cast<std::ptrdiff_t>(end));
    }
    begin = end;
  }
  return out;
}

std::shared_ptr<const SubwordSampler> make_sampler(const Tokenizer& tokenizer, double strength,
                                                   const std::string& key) {
  if (strength <= 0) return nullptr;
  const SubwordModel model = tokenizer.subword_model();
  if (model.kind == SubwordModel::Kind::kNone) {
    throw Error(ExitCode::kUsage,
                key +
                    ": this tokenizer is no SentencePiece model of type bpe or unigram, whose "
                    "segmentations can be drawn",
                "set it to 0, or use such a model");
  }
  return std::make_shared<SubwordSampler>(model, strength);
}

}  // namespace stretto::text
