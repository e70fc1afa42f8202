#include "metrics/text_units.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include <algorithm>

namespace stretto::metrics {

std::u32string decode_utf8(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  const int64_t size = static_cast<int64_t>(text.size());
  for (int64_t i = 0; i < size;) {
    UChar32 c;
    U8_NEXT_OR_FFFD(bytes, i, size, c);
    out.push_back(static_cast<char32_t>(c));
  }
  return out;
}

std::u32string lower(std::u32string_view text) {
  const bool ascii = std::all_of(text.begin(), text.end(), [](char32_t c) { return c < 0x80; });
  if (ascii) {
    std::u32string out(text);
    for (char32_t& c : out) {
      if (c >= U'A' && c <= U'Z') c += 32;
    }
    return out;
  }
  auto string = icu::UnicodeString::fromUTF32(reinterpret_cast<const UChar32*>(text.data()),
                                              static_cast<int32_t>(text.size()));
  string.toLower(icu::Locale::getRoot());
  std::u32string out;
  out.reserve(text.size());
  for (int32_t i = 0; i < string.length(); i = string.moveIndex32(i, 1)) {
    out.push_back(static_cast<char32_t>(string.char32At(i)));
  }
  return out;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool is_ascii_punctuation(char32_t c) {
  return (c >= U'!' && c <= U'/') || (c >= U':' && c <= U'@') || (c >= U'[' && c <= U'`') ||
         (c >= U'{' && c <= U'~');
}

bool is_punctuation(char32_t c) {
  return u_ispunct(static_cast<UChar32>(c)) != 0;
}

std::u32string rstrip(std::u32string text) {
  while (!text.empty() && is_space(text.back())) text.pop_back();
  return text;
}

std::vector<std::u32string> split_words(std::u32string_view text) {
  std::vector<std::u32string> words;
  size_t i = 0;
  while (i < text.size()) {
    if (is_space(text[i])) {
      ++i;
      continue;
    }
    const size_t start = i;
    while (i < text.size() && !is_space(text[i])) ++i;
    words.emplace_back(text.substr(start, i - start));
  }
  return words;
}

std::vector<uint32_t> Vocabulary::ids(std::span<const std::u32string> words) {
  std::vector<uint32_t> out;
  out.reserve(words.size());
  for (const auto& word : words) {
    out.push_back(ids_.try_emplace(word, static_cast<uint32_t>(ids_.size())).first->second);
  }
  return out;
}

NgramCounts count_ngrams(std::span<const uint32_t> symbols, int order, SymbolBits bits) {
  const int width = static_cast<int>(bits);
  const int in_low = 64 / width;  // symbols that the lower word holds: 3 characters or 2 words
  NgramCounts out;
  std::vector<Ngram> all;
  const size_t n = static_cast<size_t>(order);
  if (symbols.size() >= n) all.reserve(symbols.size() - n + 1);
  for (size_t i = 0; i + n <= symbols.size(); ++i) {
    Ngram gram;
    for (int k = 0; k < order; ++k) {
      uint64_t& word = k < in_low ? gram.low : gram.high;
      word = (word << width) | symbols[i + static_cast<size_t>(k)];
    }
    all.push_back(gram);
  }
  std::sort(all.begin(), all.end());
  out.total = static_cast<int64_t>(all.size());
  for (const Ngram& gram : all) {
    if (out.ngrams.empty() || out.ngrams.back() != gram) {
      out.ngrams.push_back(gram);
      out.counts.push_back(0);
    }
    ++out.counts.back();
  }
  return out;
}

int64_t count_matches(const NgramCounts& a, const NgramCounts& b) {
  int64_t matches = 0;
  for (size_t i = 0, j = 0; i < a.ngrams.size() && j < b.ngrams.size();) {
    if (a.ngrams[i] < b.ngrams[j]) {
      ++i;
    } else if (b.ngrams[j] < a.ngrams[i]) {
      ++j;
    } else {
      matches += std::min(a.counts[i++], b.counts[j++]);
    }
  }
  return matches;
}

NgramCounts merge_max(const NgramCounts& a, const NgramCounts& b) {
  NgramCounts out;
  size_t i = 0, j = 0;
  const auto push = [&out](const Ngram& gram, int64_t count) {
    out.ngrams.push_back(gram);
    out.counts.push_back(count);
    out.total += count;
  };
  while (i < a.ngrams.size() || j < b.ngrams.size()) {
    if (j == b.ngrams.size() || (i < a.ngrams.size() && a.ngrams[i] < b.ngrams[j])) {
      push(a.ngrams[i], a.counts[i]);
      ++i;
    } else if (i == a.ngrams.size() || b.ngrams[j] < a.ngrams[i]) {
      push(b.ngrams[j], b.counts[j]);
      ++j;
    } else {
      push(a.ngrams[i], std::max(a.counts[i], b.counts[j]));
      ++i;
      ++j;
    }
  }
  return out;
}

}  // namespace stretto::metrics
