#include "text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "text/code_points.h"

namespace stretto::text {
namespace {

/// The code point that ends before byte `at`; moves `at` to its beginning.
char32_t previous_code_point(std::string_view text, size_t& at) {
  do {
    --at;
  } while (continues_code_point(text[at]));
  size_t begin = at;
  return next_code_point(text, begin);
}

bool is_single_word(std::string_view text, ByteRange match) {
  size_t before = match.begin, after = match.end;
  return (before == 0 || !is_word_character(previous_code_point(text, before))) &&
         (after == text.size() || !is_word_character(next_code_point(text, after)));
}

size_t before_space(std::string_view text, size_t at) {
  while (at > 0) {
    size_t before = at;
    if (!is_white_space(previous_code_point(text, before))) break;
    at = before;
  }
  return at;
}

size_t behind_space(std::string_view text, size_t at) {
  while (at < text.size()) {
    size_t after = at;
    if (!is_white_space(next_code_point(text, after))) break;
    at = after;
  }
  return at;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const std::vector<std::string>& patterns)
    : tokens_(std::move(tokens)) {
  std::vector<std::pair<std::string_view, int64_t>> strings;
  for (size_t i = 0; i < patterns.size(); ++i) {
    strings.emplace_back(patterns[i], static_cast<int64_t>(i));
  }
  trie_ = PieceTrie(std::move(strings));
}

void AddedTokens::split(std::string_view text, std::vector<Part>& parts) const {
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const auto match = trie_.begins(text[at]) ? trie_.longest(text.substr(at)) : PieceTrie::Match{};
    if (match.id < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(match.id)];
    ByteRange range{at, at + match.length};
    at = range.end;
    if (token.single_word && !is_single_word(text, range)) continue;
    if (token.lstrip) range.begin = std::max(before_space(text, range.begin), done);
    if (token.rstrip) range.end = behind_space(text, range.end);
    if (done < range.begin) parts.push_back({.range = {done, range.begin}});
    parts.push_back({.range = range, .token = &token});
    done = range.end;
  }
  if (done < text.size()) parts.push_back({.range = {done, text.size()}});
}

}  // namespace stretto::text
