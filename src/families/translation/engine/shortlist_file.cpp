#include "families/translation/engine/shortlist_file.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "families/translation/word_pairs.h"

namespace stretto::tasks {
namespace {

/// From the words of one side to ids.
class ShortlistWords {
 public:
  /// @param are_pieces  whether words are looked for among the pieces first
  ShortlistWords(const text::Tokenizer& tokenizer, bool are_pieces) : tokenizer_(tokenizer) {
    if (!are_pieces) return;
    for (int64_t id = 0; id < tokenizer.size(); ++id) pieces_.emplace(tokenizer.piece(id), id);
  }

  std::vector<int64_t> ids_of(const std::string& word) const {
    if (const auto piece = pieces_.find(word); piece != pieces_.end()) return {piece->second};
    std::vector<int64_t> ids;
    tokenizer_.encode(word, ids);
    return ids;
  }

 private:
  const text::Tokenizer& tokenizer_;
  std::unordered_map<std::string, int64_t> pieces_;
};

/// Whether words are the pieces of SentencePiece, which marks the beginning of a word by U+2581.
bool has_piece_marks(const std::vector<experiment::WordPair>& pairs) {
  constexpr std::string_view kMark = "\xe2\x96\x81";
  return std::ranges::any_of(pairs, [&](const experiment::WordPair& pair) {
    return pair.src.starts_with(kMark) || pair.tgt.starts_with(kMark);
  });
}

/// A list of another language, or in the other direction, leaves outputs without their words.
void warn_of_few(const std::vector<decoding::Shortlist::Pair>& pairs, int64_t src_tokens,
                 const decoding::DecodeOptions& options) {
  constexpr int64_t kFewest = 10;  // a tenth of the vocabulary
  std::unordered_set<int64_t> covered;
  for (const auto& pair : pairs) covered.insert(pair.src);
  if (std::ssize(covered) * kFewest >= src_tokens) return;
  log::warn("decode.shortlist: " + options.shortlist + " has words for " +
            with_thousands(std::ssize(covered)) + " of " + with_thousands(src_tokens) +
            " source tokens. Behind all others, an output has only the " +
            with_thousands(options.shortlist_common) +
            " most frequent target tokens to choose from: look whether the list is that of these "
            "languages, in this direction");
}

}  // namespace

std::shared_ptr<const decoding::Shortlist> open_shortlist(const decoding::DecodeOptions& options,
                                                          const text::TokenizerPair& tokenizers) {
  if (options.shortlist.empty()) return nullptr;
  const auto words = experiment::read_word_pairs(options.shortlist);
  const bool are_pieces = has_piece_marks(words);
  const ShortlistWords of_src(*tokenizers.src, are_pieces), of_tgt(*tokenizers.tgt, are_pieces);
  std::vector<decoding::Shortlist::Pair> pairs;
  for (const experiment::WordPair& word : words) {
    const std::vector<int64_t> tgt = of_tgt.ids_of(word.tgt);
    for (const int64_t src_id : of_src.ids_of(word.src)) {
      for (const int64_t tgt_id : tgt) {
        pairs.push_back({.src = src_id, .tgt = tgt_id, .probability = word.probability});
      }
    }
  }
  warn_of_few(pairs, tokenizers.src->size(), options);
  return std::make_shared<const decoding::Shortlist>(
      std::move(pairs), tokenizers.src->size(), tokenizers.tgt->size(), options.shortlist_common,
      options.shortlist_best);
}

}  // namespace stretto::tasks
