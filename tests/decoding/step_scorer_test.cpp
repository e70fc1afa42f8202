#include "decoding/step_scorer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.h"

namespace stretto::decoding {
namespace {

constexpr int64_t kScorerVocab = 7, kScorerBegin = 5, kScorerEnd = 6;

at::Tensor log_probs_behind(const std::vector<int64_t>& history) {
  uint64_t key = 3;
  for (const int64_t token : history) key = mix64(key, static_cast<uint64_t>(token));
  RandomStream stream(key);
  std::vector<float> numbers;
  for (int64_t v = 0; v < kScorerVocab; ++v)
    numbers.push_back(static_cast<float>(4 * stream.uniform()));
  return at::log_softmax(at::tensor(numbers), 0);
}

/// A made-up language that counts the histories that it is asked for.
class CountingModel : public StepModel {
 public:
  explicit CountingModel(int64_t& asked) : asked_(asked) {}
  at::Tensor step(const at::Tensor&) override { return {}; }
  void reorder(const std::vector<int64_t>&) override {}
  at::Tensor prefill_packed(const PackedPrompts& prompts, int64_t) override {
    std::vector<at::Tensor> rows;
    auto from = prompts.ids.begin();
    for (const int64_t length : prompts.lengths) {
      rows.push_back(log_probs_behind({from, from + length}));
      from += length;
    }
    asked_ += prompts.size();
    return at::stack(rows);
  }
  bool takes_unequal_prompts() const override { return true; }
  int64_t vocab_size() const override { return kScorerVocab; }

 private:
  int64_t& asked_;
};

StepScorer scorer_that_counts(int64_t& asked) {
  // Three tokens of the search; the second is none of the model's.
  return StepScorer([&asked](int64_t) { return std::make_unique<CountingModel>(asked); },
                    {kScorerBegin}, kScorerEnd, {2, -1, 4}, 2);
}

float value(const at::Tensor& row, int64_t token) {
  return row[token].item<float>();
}

TEST(StepScorer, EveryHistoryIsScoredOnceAndByItsTokens) {
  int64_t asked = 0;
  StepScorer scorer = scorer_that_counts(asked);
  std::vector<TokenQuery> queries = {{scorer.start(), 0}, {scorer.start(), 2}, {scorer.start(), 1}};
  std::vector<TokenScore> scores(3);
  scorer.score(queries, scores);
  EXPECT_EQ(asked, 1);
  const at::Tensor first = log_probs_behind({kScorerBegin});
  EXPECT_EQ(scores[0].log_prob, value(first, 2));
  EXPECT_EQ(scores[1].log_prob, value(first, 4));
  EXPECT_EQ(scores[2].log_prob, first.min().item<float>());

  queries = {{scores[1].next, 0}, {scores[0].next, 2}, {scores[2].next, 0}};
  scorer.score(queries, scores);
  EXPECT_EQ(asked, 4);
  EXPECT_EQ(scores[0].log_prob, value(log_probs_behind({kScorerBegin, 4}), 2));
  EXPECT_EQ(scores[1].log_prob, value(log_probs_behind({kScorerBegin, 2}), 4));
  EXPECT_EQ(scores[2].log_prob, value(first, 2)) << "a token that it does not know leaves no trace";
  EXPECT_EQ(scorer.end(scores[0].next), value(log_probs_behind({kScorerBegin, 4, 2}), kScorerEnd));
  EXPECT_EQ(asked, 5);
}

TEST(StepScorer, KeptHistoriesScoreAsBefore) {
  int64_t asked = 0;
  StepScorer scorer = scorer_that_counts(asked);
  std::vector<TokenScore> scores(2);
  scorer.score(std::vector<TokenQuery>{{0, 0}, {0, 2}}, scores);
  const uint32_t a = scores[0].next, b = scores[1].next;
  scorer.score(std::vector<TokenQuery>{{a, 0}, {b, 2}}, scores);
  std::vector<uint32_t> states = {scores[1].next};
  EXPECT_EQ(scorer.num_states(), 5U);
  scorer.keep(states);
  EXPECT_EQ(scorer.num_states(), 3U);
  EXPECT_EQ(scorer.end(states[0]), value(log_probs_behind({kScorerBegin, 4, 4}), kScorerEnd));
  scorer.keep({});
  EXPECT_EQ(scorer.num_states(), 1U);
}

}  // namespace
}  // namespace stretto::decoding
