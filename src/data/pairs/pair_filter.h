#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/pairs/corpus.h"
#include "data/pairs/data_options.h"
#include "text/tokenizer.h"

namespace stretto::data {

enum class InvalidUtf8 { kSkip, kReplace, kError };
enum class TooLong { kSkip, kTruncate, kError };

/// What happens to a pair of lines on its way into a corpus.
struct PairRules {
  int64_t max_src_tokens = 0, max_tgt_tokens = 0;  ///< end-of-sentence included
  double max_ratio = 0;                            ///< 0 = any
  InvalidUtf8 invalid_utf8 = InvalidUtf8::kSkip;
  TooLong too_long = TooLong::kSkip;
  bool two_sources = false;  ///< source lines are joined ones (data/pairs/two_sources.h)
};

/// Training takes the rules as configured. Validation and test keep every pair with text on both
/// sides: over-long sentences are truncated, bytes that are not UTF-8 are replaced (an error where
/// `data.invalid_utf8 = "error"`), and there is no ratio.
PairRules rules_for(const DataOptions& options, Split split);

/// Where a pair of lines stands, for messages.
struct PairPlace {
  std::string_view src_name, tgt_name;
  int64_t line = 0;
  int64_t input = 0;
  std::string_view src2_name = {};  ///< of the second source, where there are two
};

struct EncodedPair {
  std::string src_text, tgt_text;    ///< as they were tokenised
  std::vector<int64_t> src, tgt;     ///< with end-of-sentence
  int64_t src_cut = 0, tgt_cut = 0;  ///< tokens that truncation cut off
};

/// One kind of thing that the filters do, as messages and the cache list it.
struct FilterKind {
  const char* name;  ///< "too long"
  bool left_out;     ///< else the pair was kept, changed
  int64_t FilterCounts::*count;
  FirstLines FilterCounts::*first;
};
std::span<const FilterKind> filter_kinds();

/// Adds the counts of lines that come later in the corpus.
void add_counts(const FilterCounts& more, FilterCounts& all);

/// Counts both sides of a kept pair.
void count_pair(const text::TokenizerPair& tokenizers, const EncodedPair& pair, TextCounts& src,
                TextCounts& tgt);
void add_counts(const TextCounts& more, TextCounts& all);

/// Applies the rules in this order: UTF-8, empty, length, ratio; a pair is counted once, under
/// `kept` or the first rule that it broke. A side is empty when it has no text or no tokens; of two
/// sources both must have some. Bound and ratio go by the tokens of both together.
///
/// @return true when the pair is kept; then `out` holds it
/// Throws a PairFault (data/pairs/pair_faults.h) with file and line where a rule says `error`.
bool encode_pair(const PairRules& rules, const text::TokenizerPair& tokenizers,
                 std::string_view src, std::string_view tgt, const PairPlace& place,
                 EncodedPair& out, FilterCounts& counts);

/// The first of these rules alone, where it is an error: throws as encode_pair() does.
void require_utf8(const PairRules& rules, std::string_view src, std::string_view tgt,
                  const PairPlace& place);

/// Replaces each maximal ill-formed part by U+FFFD, as the Unicode standard recommends.
std::string replace_invalid_utf8(std::string_view text);

}  // namespace stretto::data
