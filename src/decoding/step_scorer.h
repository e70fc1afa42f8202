#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "decoding/step_model.h"
#include "decoding/token_scorer.h"

namespace stretto::decoding {

/// A language model that decodes step by step, as the TokenScorer of a search. Each history is
/// scored once, for all tokens that may follow it. Histories that are new are scored together, each
/// from its beginning, since a search lengthens some of its hypotheses and not others: the model
/// must take prompts of unequal lengths.
class StepScorer final : public TokenScorer {
 public:
  /// A model before its first step, with so many sources of one lane.
  using Start = std::function<std::unique_ptr<StepModel>(int64_t sources)>;

  /// @param begin   tokens in front of every text, one at least
  /// @param end     the token that ends a text; -1 = none, and ends score 0
  /// @param tokens  the model's token of each token of the search; -1 = it has none, and such a
  ///                token scores as the unlikeliest one
  /// @param most_histories  scored in one pass
  StepScorer(Start start, std::vector<int64_t> begin, int64_t end, std::vector<int64_t> tokens,
             int64_t most_histories = 64);

  uint32_t start() override { return 0; }
  void score(std::span<const TokenQuery> queries, std::span<TokenScore> scores) override;
  float end(uint32_t state) override;
  void keep(std::span<uint32_t> states) override;
  size_t num_states() const override { return histories_.size(); }

 private:
  struct History {
    uint32_t parent = 0;
    int32_t token = -1;            ///< of the search; -1 = the beginning
    std::vector<float> log_probs;  ///< of tokens of the search, then of the end; empty = unknown
    std::vector<std::pair<int32_t, uint32_t>> children;  ///< token, state
  };
  std::vector<int64_t> prompt_of(uint32_t state) const;
  /// Scores what may follow these histories.
  void complete(const std::vector<uint32_t>& states);
  void take_row(History& history, const float* row, int64_t vocab_size) const;
  uint32_t child(uint32_t state, int32_t token);

  Start start_;
  std::vector<int64_t> begin_;
  int64_t end_;
  std::vector<int64_t> tokens_;
  int64_t most_histories_;
  std::vector<History> histories_;
};

}  // namespace stretto::decoding
