#include "text/word_cache.h"

#include "base/hash.h"

namespace stretto::text {
namespace {

constexpr size_t kNumSlots = size_t{1} << 16;
constexpr size_t kMaxWords = kNumSlots / 2;
constexpr size_t kMaxWordBytes = 64;

}  // namespace

std::span<const WordPiece> WordCache::cut_anew(std::string_view word) {
  fresh_.clear();
  model_.cut(word, fresh_);
  return fresh_;
}

void WordCache::remember(Slot& slot, uint64_t hash, std::string_view word) {
  slot = {.hash = hash,
          .word = static_cast<uint32_t>(words_.size()),
          .pieces = static_cast<uint32_t>(pieces_.size()),
          .word_size = static_cast<uint16_t>(word.size()),
          .num_pieces = static_cast<uint16_t>(fresh_.size())};
  words_ += word;
  pieces_.insert(pieces_.end(), fresh_.begin(), fresh_.end());
  ++num_words_;
}

std::span<const WordPiece> WordCache::cut(std::string_view word) {
  if (word.size() > kMaxWordBytes) return cut_anew(word);
  if (slots_.empty() || num_words_ == kMaxWords) {
    slots_.assign(kNumSlots, Slot());
    words_.clear();
    pieces_.clear();
    num_words_ = 0;
  }
  const uint64_t hash = xxh3_64(word);
  size_t at = hash % kNumSlots;
  for (; slots_[at].word_size != 0; at = (at + 1) % kNumSlots) {
    const Slot& slot = slots_[at];
    if (slot.hash == hash && std::string_view(words_).substr(slot.word, slot.word_size) == word) {
      return {pieces_.data() + slot.pieces, slot.num_pieces};
    }
  }
  cut_anew(word);
  remember(slots_[at], hash, word);
  return fresh_;
}

}  // namespace stretto::text
