#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "text/piece_trie.h"
#include "text/word_model.h"

namespace stretto::text {

/// Tokens and their ids.
using PieceIds = std::vector<std::pair<std::string, int64_t>>;

struct WordPieceOptions {
  int64_t unk_id = 0;
  std::string continuing_prefix = "##";  ///< of pieces that do not begin a word
  int64_t max_word_chars = 100;          ///< a longer word is one unknown token
};

/// WordPiece: the longest piece first, from left to right. A word that cannot be spelt to its end
/// is one unknown token (Wu et al. 2016, arXiv:1609.08144, section 4.1; Devlin et al. 2019).
class WordPieceModel final : public WordModel {
 public:
  /// @param vocab  outlived by nothing: its strings are copied
  WordPieceModel(const PieceIds& vocab, const WordPieceOptions& options);
  void cut(std::string_view word, std::vector<WordPiece>& pieces) const override;

 private:
  int32_t unk_id_;
  int64_t max_word_chars_;
  PieceTrie first_, continuing_;
};

}  // namespace stretto::text
