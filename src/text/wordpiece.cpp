#include "text/wordpiece.h"

#include <algorithm>

#include "text/code_points.h"

namespace stretto::text {
namespace {

PieceTrie trie_of(const PieceIds& vocab, const std::string& prefix) {
  std::vector<std::pair<std::string_view, int64_t>> pieces;
  for (const auto& [piece, id] : vocab) {
    if (piece.starts_with(prefix)) {
      pieces.emplace_back(std::string_view(piece).substr(prefix.size()), id);
    }
  }
  return PieceTrie(std::move(pieces));
}

}  // namespace

WordPieceModel::WordPieceModel(const PieceIds& vocab, const WordPieceOptions& options)
    : unk_id_(static_cast<int32_t>(options.unk_id)),
      max_word_chars_(options.max_word_chars),
      first_(trie_of(vocab, "")),
      continuing_(trie_of(vocab, options.continuing_prefix)) {}

void WordPieceModel::cut(std::string_view word, std::vector<WordPiece>& pieces) const {
  const auto unknown = [&] { pieces.push_back({unk_id_, static_cast<uint32_t>(word.size())}); };
  const auto num_chars = word.size() - static_cast<size_t>(std::count_if(word.begin(), word.end(),
                                                                         continues_code_point));
  if (static_cast<int64_t>(num_chars) > max_word_chars_) return unknown();
  const size_t before = pieces.size();
  for (size_t at = 0; at < word.size();) {
    const auto match = (at == 0 ? first_ : continuing_).longest(word.substr(at));
    if (match.id < 0) {
      pieces.resize(before);
      return unknown();
    }
    pieces.push_back({static_cast<int32_t>(match.id), static_cast<uint32_t>(match.length)});
    at += match.length;
  }
}

}  // namespace stretto::text
