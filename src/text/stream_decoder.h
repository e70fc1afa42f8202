#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace stretto::text {

/// Tokens one by one, and the text of each as soon as no later token can change it.
///
/// What add() and finish() return, one behind the other, is what decode() makes of all tokens,
/// without the text of those in front (the prompt that they continue): the space before a word of
/// SentencePiece is there behind a prompt, and not at the beginning of a text. No part ends within
/// a character: bytes of one that several tokens spell are held back until it is whole, or until it
/// cannot become one.
///
/// A token costs the decoding of at most kWindow tokens, however long the text is.
class StreamDecoder {
 public:
  /// @param tokenizer  outlives this object
  /// @param context    tokens in front, which are not returned
  explicit StreamDecoder(const Tokenizer& tokenizer, const std::vector<int64_t>& context = {});

  /// The text that has become certain with this token; may be empty.
  std::string add(int64_t id);
  /// The text that is still held back, as decode() has it. No token comes behind it.
  std::string finish();

 private:
  static constexpr size_t kWindow = 64, kKept = 16;

  std::string take(const std::string& text, size_t end);
  void shorten(const std::string& text);

  const Tokenizer& tokenizer_;
  std::vector<int64_t> window_;  ///< the last tokens
  std::string given_;            ///< text of the window that was returned, or is the context's
};

}  // namespace stretto::text
