#include "ctc/ngram_scorer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/text/ngram/small_arpa.h"
#include "text/ngram/open_ngram_model.h"

namespace stretto::ctc {
namespace {

using decoding::TokenQuery;
using decoding::TokenScore;

TokenScore answer_of(NgramScorer& scorer, uint32_t state, int32_t token) {
  const std::vector<TokenQuery> queries = {{state, token}};
  std::vector<TokenScore> scores(1);
  scorer.score(queries, scores);
  return scores[0];
}

class NgramScorerTest : public ::testing::Test {
 protected:
  int32_t token(const std::string& word) const { return static_cast<int32_t>(model_->index(word)); }
  const std::unique_ptr<text::NgramModel> model_ =
      text::read_ngram_model(stretto::testing::kSmallArpa, "lm.arpa");
  NgramScorer scorer_{*model_};
  const float ln10_ = std::log(10.0F);
};

TEST_F(NgramScorerTest, ScoresAreNaturalLogarithms) {
  const TokenScore the = answer_of(scorer_, scorer_.start(), token("the"));
  EXPECT_NEAR(the.log_prob, -0.3F * ln10_, 1e-5);
  const TokenScore cat = answer_of(scorer_, the.next, token("cat"));
  EXPECT_NEAR(cat.log_prob, -0.1F * ln10_, 1e-5);
  EXPECT_NEAR(answer_of(scorer_, the.next, -1).log_prob, -2.65F * ln10_, 1e-5) << "<unk>";
  EXPECT_NEAR(scorer_.end(cat.next), -1.45F * ln10_, 1e-5);
}

TEST_F(NgramScorerTest, HistoriesThatTheModelCannotTellApartAreOneState) {
  const TokenScore a = answer_of(scorer_, scorer_.start(), token("a"));
  const TokenScore the = answer_of(scorer_, scorer_.start(), token("the"));
  EXPECT_NE(a.next, the.next);
  EXPECT_EQ(answer_of(scorer_, the.next, token("a")).next, a.next);
  EXPECT_EQ(answer_of(scorer_, a.next, -1).next, a.next) << "both know nothing of what follows";
}

TEST_F(NgramScorerTest, KeptStatesScoreAsBefore) {
  const TokenScore the = answer_of(scorer_, scorer_.start(), token("the"));
  const TokenScore cat = answer_of(scorer_, the.next, token("cat"));
  const float sat = answer_of(scorer_, cat.next, token("sat")).log_prob;
  const float end = scorer_.end(cat.next);
  std::vector<uint32_t> states = {cat.next, cat.next};
  scorer_.keep(states);
  EXPECT_EQ(states[0], states[1]);
  EXPECT_EQ(scorer_.num_states(), 2U) << "and the start";
  EXPECT_EQ(answer_of(scorer_, states[0], token("sat")).log_prob, sat);
  EXPECT_EQ(scorer_.end(states[0]), end);
  EXPECT_NEAR(answer_of(scorer_, scorer_.start(), token("the")).log_prob, the.log_prob, 0);
}

}  // namespace
}  // namespace stretto::ctc
