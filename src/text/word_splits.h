#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace stretto::text {

/// Bytes [begin, end) of a text.
struct ByteRange {
  size_t begin = 0, end = 0;
  std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
  bool operator==(const ByteRange&) const = default;
};

/// Appends the words of well-formed UTF-8 as BERT's pre-tokenizer does: what stands between white
/// space; each character of punctuation is a word.
void split_at_punctuation(std::string_view text, std::vector<ByteRange>& words);

/// Appends the words of GPT-2's pattern (Radford et al. 2019, `encoder.py`), which together are the
/// text:
/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`.
void split_by_class(std::string_view text, std::vector<ByteRange>& words);

/// Appends the words of the pattern of Llama 3 and of Qwen2, which together are the text:
/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|
/// \s*[\r\n]+|\s+(?!\S)|\s+`.
/// @param most_digits  of a word of numbers: 3 in Llama 3, 1 in Qwen2
void split_by_lines(std::string_view text, int most_digits, std::vector<ByteRange>& words);

}  // namespace stretto::text
