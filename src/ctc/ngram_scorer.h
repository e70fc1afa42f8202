#pragma once

#include <cstdint>
#include <vector>

#include "decoding/token_scorer.h"
#include "text/ngram/ngram_model.h"

namespace stretto::ctc {

/// An n-gram model as a TokenScorer. Histories that the model cannot tell apart have one state.
class NgramScorer final : public decoding::TokenScorer {
 public:
  explicit NgramScorer(const text::NgramModel& model);  ///< not owned

  uint32_t start() override { return start_; }
  /// Token -1 counts as `<unk>`.
  void score(std::span<const decoding::TokenQuery> queries,
             std::span<decoding::TokenScore> scores) override;
  float end(uint32_t state) override;
  void keep(std::span<uint32_t> states) override;
  size_t num_states() const override { return states_.size(); }

 private:
  struct Known {
    decoding::TokenQuery query;
    decoding::TokenScore score;
  };
  uint32_t number_of(const text::NgramState& state);
  decoding::TokenScore look_up(const decoding::TokenQuery& query);

  const text::NgramModel& model_;
  std::vector<text::NgramState> states_;
  std::vector<uint32_t> places_;  ///< hash table: number of a state + 1; 0 = empty
  std::vector<Known> known_;      ///< the last answers, by a hash of their query
  uint32_t start_ = 0;
};

}  // namespace stretto::ctc
