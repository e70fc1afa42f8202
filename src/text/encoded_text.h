#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/sequence_template.h"
#include "text/tokenizer.h"

namespace stretto::text {

/// A text, or two, as an encoder takes it: ids with special tokens, for each the text that it
/// belongs to, and how many tokens were cut off.
struct EncodedText {
  std::vector<int64_t> ids, segments;  ///< equally long
  int64_t num_cut = 0;
};

/// How a text that is too long is cut.
struct TextBound {
  enum class Side : uint8_t { kEnd, kStart };
  /// Which text of a pair is cut: always the longer one, token by token (the second one of two that
  /// are equal, as BERT's own programs cut), or this one alone.
  enum class Which : uint8_t { kLongest, kFirst, kSecond };

  int64_t max_tokens = 512;  ///< special ones included
  Side side = Side::kEnd;    ///< which is cut off
  Which which = Which::kLongest;
  bool pairs = true;  ///< whether there are pairs, around which more special tokens stand
};

/// What surrounds texts: the tokenizer's own template; for a tokenizer without one, its beginning-
/// and end-of-sentence, as far as it has them: bos A eos, and bos A eos B eos.
SequenceTemplate template_of(const Tokenizer& tokenizer);

/// Ids of texts with the special tokens around them. Safe to use from several threads.
class TextEncoder {
 public:
  /// @param tokenizer  outlives this object
  /// Throws Error(kUsage) where special tokens leave no room for text.
  TextEncoder(const Tokenizer& tokenizer, const TextBound& bound);

  EncodedText encode(std::string_view text) const;
  /// At least one text of a pair keeps a token. Throws Error(kBadData) where the bound cuts one
  /// text alone, and the other one leaves no room; std::logic_error for a bound without pairs.
  EncodedText encode(std::string_view first, std::string_view second) const;

  /// The same of ids without special tokens.
  EncodedText place(std::vector<int64_t> text) const;
  EncodedText place(std::vector<int64_t> first, std::vector<int64_t> second) const;

  /// Special tokens around one text, and around two.
  int64_t num_specials() const { return num_specials_; }
  int64_t num_pair_specials() const { return num_pair_specials_; }

 private:
  int64_t cut(std::vector<int64_t>& ids, int64_t most) const;
  int64_t cut_pair(std::vector<int64_t>& first, std::vector<int64_t>& second) const;

  const Tokenizer& tokenizer_;
  TextBound bound_;
  SequenceTemplate template_;
  int64_t num_specials_ = 0, num_pair_specials_ = 0;
};

}  // namespace stretto::text
