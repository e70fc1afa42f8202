#include "text/byte_bpe.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <tuple>
#include <utility>

#include "text/code_points.h"

namespace stretto::text {
namespace {

constexpr char32_t kFirstSubstitute = 256;

/// Whether the byte, taken as a code point of Latin-1, stands for itself.
constexpr bool is_printable_latin(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

std::array<char32_t, 256> alphabet_code_points() {
  std::array<char32_t, 256> characters{};
  char32_t substitute = kFirstSubstitute;
  for (unsigned byte = 0; byte < 256; ++byte) {
    characters[byte] = is_printable_latin(byte) ? byte : substitute++;
  }
  return characters;
}

uint64_t pair_of(int32_t left, int32_t right) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
}

size_t slot_of(uint64_t pair, size_t num_slots) {
  constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
  return (pair * kGoldenRatio) >> (64 - std::countr_zero(num_slots));
}

}  // namespace

const std::array<std::string, 256>& byte_alphabet() {
  static const std::array<std::string, 256> kAlphabet = [] {
    std::array<std::string, 256> strings;
    const auto characters = alphabet_code_points();
    for (size_t byte = 0; byte < 256; ++byte) append_utf8(strings[byte], characters[byte]);
    return strings;
  }();
  return kAlphabet;
}

std::optional<std::string> bytes_of_piece(std::string_view piece) {
  static const std::unordered_map<char32_t, char> kBytes = [] {
    std::unordered_map<char32_t, char> bytes;
    const auto characters = alphabet_code_points();
    for (size_t byte = 0; byte < 256; ++byte) bytes[characters[byte]] = static_cast<char>(byte);
    return bytes;
  }();
  std::string spelt;
  for (size_t at = 0; at < piece.size();) {
    const auto found = kBytes.find(next_code_point(piece, at));
    if (found == kBytes.end()) return std::nullopt;
    spelt += found->second;
  }
  return spelt;
}

std::optional<char> byte_of_fallback(std::string_view piece) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  const size_t high = kDigits.find(piece[3]), low = kDigits.find(piece[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return static_cast<char>(16 * high + low);
}

ByteBpeModel::ByteBpeModel(const PieceIds& vocab, const std::vector<Merge>& merges,
                           const ByteBpeOptions& options)
    : unk_id_(options.unk_id),
      of_characters_(options.of_characters),
      byte_fallback_(options.byte_fallback),
      fuse_unk_(options.fuse_unk),
      ignore_merges_(options.ignore_merges) {
  byte_ids_.fill(-1);
  of_characters_ ? take_character_pieces(vocab) : take_byte_pieces(vocab);
  table_.resize(std::bit_ceil(2 * merges.size() + 2));
  uint32_t rank = 0;
  for (const Merge& merge : merges) {
    const uint64_t pair = pair_of(merge.left, merge.right);
    size_t slot = slot_of(pair, table_.size());
    while (table_[slot].pair != kNoPair && table_[slot].pair != pair) {
      slot = (slot + 1) % table_.size();
    }
    table_[slot] = {pair, rank++, merge.merged};
  }
}

void ByteBpeModel::take_byte_pieces(const PieceIds& vocab) {
  for (const auto& [piece, id] : vocab) {
    const auto bytes = bytes_of_piece(piece);
    if (!bytes) continue;
    if (bytes->size() == 1)
      byte_ids_[static_cast<unsigned char>((*bytes)[0])] = static_cast<int32_t>(id);
    if (ignore_merges_) whole_words_[*bytes] = static_cast<int32_t>(id);
  }
}

void ByteBpeModel::take_character_pieces(const PieceIds& vocab) {
  for (const auto& [piece, id] : vocab) {
    if (piece.empty()) continue;
    const auto number = static_cast<int32_t>(id);
    if (const auto byte = byte_of_fallback(piece)) {
      byte_ids_[static_cast<unsigned char>(*byte)] = number;
    }
    size_t end = 0;
    next_code_point(piece, end);
    if (end >= piece.size()) character_ids_[piece] = number;
    if (ignore_merges_) whole_words_[piece] = number;
  }
}

const ByteBpeModel::Entry* ByteBpeModel::find(int32_t left, int32_t right) const {
  const uint64_t pair = pair_of(left, right);
  size_t slot = slot_of(pair, table_.size());
  while (table_[slot].pair != pair) {
    if (table_[slot].pair == kNoPair) return nullptr;
    slot = (slot + 1) & (table_.size() - 1);
  }
  return &table_[slot];
}

void ByteBpeModel::begin_as_bytes(std::string_view bytes, std::vector<WordPiece>& symbols) const {
  bool is_open = false;   // whether the last symbol is an unknown one that may grow
  uint32_t num_lost = 0;  // bytes that are left out before the first symbol
  for (const char byte : bytes) {
    const int32_t id = byte_ids_[static_cast<unsigned char>(byte)];
    if (id >= 0) {
      symbols.push_back({id, 1 + std::exchange(num_lost, 0)});
      is_open = false;
    } else if (unk_id_ && !(is_open && fuse_unk_)) {
      symbols.push_back({static_cast<int32_t>(*unk_id_), 1});
      is_open = true;
    } else if (!symbols.empty()) {
      ++symbols.back().size;
    } else {
      ++num_lost;
    }
  }
}

bool ByteBpeModel::spell_by_bytes(std::string_view character,
                                  std::vector<WordPiece>& symbols) const {
  const size_t before = symbols.size();
  for (const char byte : character) {
    const int32_t id = byte_ids_[static_cast<unsigned char>(byte)];
    if (id < 0) {
      symbols.resize(before);
      return false;
    }
    symbols.push_back({id, 1});
  }
  return true;
}

void ByteBpeModel::begin_as_characters(std::string_view text,
                                       std::vector<WordPiece>& symbols) const {
  bool is_open = false;  // as in begin_as_bytes()
  uint32_t num_lost = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    next_code_point(text, at);
    const std::string_view character = text.substr(begin, at - begin);
    const auto size = static_cast<uint32_t>(character.size());
    const auto found = character_ids_.find(character);
    if (found != character_ids_.end()) {
      symbols.push_back({found->second, size + std::exchange(num_lost, 0)});
      is_open = false;
    } else if (byte_fallback_ && spell_by_bytes(character, symbols)) {
      symbols[symbols.size() - size].size += std::exchange(num_lost, 0);
      is_open = false;
    } else if (unk_id_ && !(is_open && fuse_unk_)) {
      symbols.push_back({static_cast<int32_t>(*unk_id_), size + std::exchange(num_lost, 0)});
      is_open = true;
    } else if (!symbols.empty()) {
      symbols.back().size += size;
    } else {
      num_lost += size;
    }
  }
}

/// A word whose pairs are being joined: a list of symbols, and a queue of the pairs that may be.
struct ByteBpeModel::Word {
  struct Symbol {
    int32_t id;
    uint32_t size;  ///< 0 = it was joined to the one before
    int32_t before, after;
  };
  struct Candidate {
    uint32_t rank;
    int32_t at;
    int32_t merged;
    bool operator>(const Candidate& other) const {
      return std::tie(rank, at) > std::tie(other.rank, other.at);
    }
  };
  const ByteBpeModel& model;
  std::vector<Symbol> symbols;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;

  void offer(int32_t at) {
    const int32_t after = symbols[static_cast<size_t>(at)].after;
    if (after < 0) return;
    const Entry* entry =
        model.find(symbols[static_cast<size_t>(at)].id, symbols[static_cast<size_t>(after)].id);
    if (entry != nullptr) queue.push({entry->rank, at, entry->merged});
  }

  void join_next() {
    const Candidate next = queue.top();
    queue.pop();
    Symbol& left = symbols[static_cast<size_t>(next.at)];
    if (left.size == 0 || left.after < 0) return;
    Symbol& right = symbols[static_cast<size_t>(left.after)];
    const Entry* entry = model.find(left.id, right.id);
    if (entry == nullptr || entry->merged != next.merged) return;  // a neighbour was joined earlier
    left.id = next.merged;
    left.size += right.size;
    left.after = right.after;
    right.size = 0;
    if (left.after >= 0) symbols[static_cast<size_t>(left.after)].before = next.at;
    if (left.before >= 0) offer(left.before);
    offer(next.at);
  }
};

void ByteBpeModel::cut(std::string_view bytes, std::vector<WordPiece>& pieces) const {
  if (ignore_merges_) {
    const auto found = whole_words_.find(bytes);
    if (found != whole_words_.end()) {
      pieces.push_back({found->second, static_cast<uint32_t>(bytes.size())});
      return;
    }
  }
  std::vector<WordPiece> start;
  of_characters_ ? begin_as_characters(bytes, start) : begin_as_bytes(bytes, start);
  Word word{.model = *this, .symbols = {}, .queue = {}};
  const auto count = static_cast<int32_t>(start.size());
  for (int32_t i = 0; i < count; ++i) {
    const WordPiece& symbol = start[static_cast<size_t>(i)];
    word.symbols.push_back({symbol.id, symbol.size, i - 1, i + 1 < count ? i + 1 : -1});
  }
  for (int32_t i = 0; i < count; ++i) word.offer(i);
  while (!word.queue.empty()) word.join_next();
  for (const auto& symbol : word.symbols) {
    if (symbol.size > 0) pieces.push_back({symbol.id, symbol.size});
  }
}

}  // namespace stretto::text
