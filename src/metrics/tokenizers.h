#pragma once

#include <string>
#include <vector>

namespace stretto::metrics {

/// Turns a segment into a string whose words, split at white space, are what BLEU counts.
using BleuTokenizer = std::u32string (*)(std::u32string);

/// mteval-v13a: separates ASCII punctuation; `.` and `,` stay inside numbers, `-` parts from a
/// digit before it. XML entities for `"`, `&`, `<`, `>` are read back.
std::u32string tokenize_13a(std::u32string line);

/// mteval-v14 with --international-tokenization: separates Unicode punctuation (\p{P}) that has a
/// non-number (\P{N}) on one side, and every symbol (\p{S}).
std::u32string tokenize_intl(std::u32string line);

/// Leaves the words as they are.
std::u32string tokenize_none(std::u32string line);

/// Every code point is a word.
std::u32string tokenize_char(std::u32string line);

struct BleuTokenizerEntry {
  const char* name;
  BleuTokenizer tokenize;
};

/// Every tokenizer there is; adding one is a function and a line in registry.cpp.
const std::vector<BleuTokenizerEntry>& bleu_tokenizers();

/// Throws Error(kUsage) for an unknown name.
BleuTokenizer find_bleu_tokenizer(const std::string& name);

}  // namespace stretto::metrics
