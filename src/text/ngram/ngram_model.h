#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stretto::text {

/// The highest order of an n-gram model.
inline constexpr int kMaxNgramOrder = 8;

/// What an n-gram model remembers of a history: its last words, as far as the model has n-grams of
/// them. Histories with equal states get equal scores for whatever follows.
struct NgramState {
  std::array<uint32_t, kMaxNgramOrder - 1> words{};  ///< the last word first
  std::array<float, kMaxNgramOrder - 1> backoffs{};  ///< log10, of the last 1, 2, … words
  uint32_t length = 0;                               ///< words that count

  bool operator==(const NgramState& other) const;
};

/// An n-gram language model with back-off (Katz 1987), memory-mapped and shared by threads:
///
///     log10 p(w | h) = prob(h w)                      where the model has h w
///                      backoff(h) + log10 p(w | h')   else; h' is h without its first word
///
/// A word is known by its index. Index 0 is that of `<unk>`, all words that the model does not
/// have.
class NgramModel {
 public:
  virtual ~NgramModel() = default;

  virtual int order() const = 0;
  virtual uint32_t num_words() const = 0;                   ///< with `<unk>`, `<s>` and `</s>`
  virtual uint32_t index(std::string_view word) const = 0;  ///< 0 = unknown
  /// The word of an index; empty where the file has no strings (has_strings()).
  virtual std::string_view word(uint32_t index) const = 0;
  virtual bool has_strings() const = 0;
  uint32_t begin_index() const { return begin_index_; }  ///< of `<s>`
  uint32_t end_index() const { return end_index_; }      ///< of `</s>`

  /// log10 p(word | history). @param next  the history with the word; may not be `history` itself
  virtual float score(const NgramState& history, uint32_t word, NgramState& next) const = 0;

  NgramState empty_history() const { return {}; }
  NgramState begin_history() const;  ///< of a text's first word: `<s>`
  /// log10 p(word), without a history.
  float unigram(uint32_t word) const;

 protected:
  uint32_t begin_index_ = 0, end_index_ = 0;
};

}  // namespace stretto::text
