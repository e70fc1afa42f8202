#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stretto::decoding {

/// A token behind a history whose state is known.
struct TokenQuery {
  uint32_t state = 0;  ///< of the history, as a TokenScorer numbers it
  int32_t token = 0;   ///< as the model of the scorer numbers tokens; -1 = one it does not know
};

/// What a TokenScorer says of it.
struct TokenScore {
  float log_prob = 0;  ///< natural log
  uint32_t next = 0;   ///< state of the history with the token behind it
};

/// Scores of another model beside those of a search, such as those of a language model beside
/// the labels of frames. A history is known by the number of its state: histories that the model
/// cannot tell apart may share one. A scorer serves one search, on one thread.
class TokenScorer {
 public:
  virtual ~TokenScorer() = default;

  /// The state in front of the first token.
  virtual uint32_t start() = 0;
  /// Answers all queries together, in their order; a result does not depend on the others.
  /// @param scores  as many as queries
  virtual void score(std::span<const TokenQuery> queries, std::span<TokenScore> scores) = 0;
  /// Natural log of the probability that the text ends behind this history.
  virtual float end(uint32_t state) = 0;
  /// From now on these states alone are asked for. Each number is replaced by the state's new one.
  virtual void keep(std::span<uint32_t> states) = 0;
  /// States that the scorer holds now: a search calls keep() when they become many.
  virtual size_t num_states() const = 0;
};

}  // namespace stretto::decoding
