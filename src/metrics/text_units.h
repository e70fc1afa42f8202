#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace stretto::metrics {

/// Text as code points: metrics count characters, and sacreBLEU's rules are written for them.
/// A malformed byte sequence becomes U+FFFD.
std::u32string decode_utf8(std::string_view text);

/// Unicode's full lower-casing without a language, as Python's str.lower().
std::u32string lower(std::u32string_view text);

/// White space as Python's str.split() sees it: wider than ASCII, and not quite Unicode's property.
bool is_space(char32_t c);
/// Python's string.punctuation: the 32 characters of ASCII that are no letter, digit, space or
/// control.
bool is_ascii_punctuation(char32_t c);
/// Unicode's \p{P}.
bool is_punctuation(char32_t c);
std::u32string rstrip(std::u32string text);
std::vector<std::u32string> split_words(std::u32string_view text);

/// Numbers words, so that n-grams compare by number.
class Vocabulary {
 public:
  std::vector<uint32_t> ids(std::span<const std::u32string> words);

 private:
  std::unordered_map<std::u32string, uint32_t> ids_;
};

/// An n-gram of at most six code points or four words, packed.
struct Ngram {
  uint64_t high = 0, low = 0;
  auto operator<=>(const Ngram&) const = default;
};

/// Distinct n-grams of one order in ascending order, with their counts.
struct NgramCounts {
  std::vector<Ngram> ngrams;
  std::vector<int64_t> counts;
  int64_t total = 0;
};

/// How many bits a symbol takes in an Ngram, which bounds the order that fits.
enum class SymbolBits : int {
  kCharacter = 21,  ///< a code point; orders 1 to 6
  kWord = 32,       ///< a vocabulary id; orders 1 to 4
};

/// All n-grams of `order` consecutive symbols.
NgramCounts count_ngrams(std::span<const uint32_t> symbols, int order, SymbolBits bits);

/// Sum over n-grams of the smaller of both counts.
int64_t count_matches(const NgramCounts& a, const NgramCounts& b);

/// For each n-gram the larger of both counts.
NgramCounts merge_max(const NgramCounts& a, const NgramCounts& b);

}  // namespace stretto::metrics
