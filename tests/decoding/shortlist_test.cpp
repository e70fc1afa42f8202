#include "decoding/shortlist.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "decoding/shortlist_steps.h"
#include "tests/base/failure.h"

namespace stretto::decoding {
namespace {

using Ids = std::vector<int64_t>;

TEST(Shortlist, HasThePairsOfEachTokenOfASourceOnceAndInOrder) {
  const Shortlist list(
      {{.src = 5, .tgt = 9}, {.src = 6, .tgt = 8}, {.src = 5, .tgt = 7}, {.src = 6, .tgt = 9}}, 10,
      20, 0, 100);
  EXPECT_EQ(list.of(Ids{5, 6, 5}, {}), (Ids{7, 8, 9}));
  EXPECT_EQ(list.of(Ids{6}, Ids{3}), (Ids{3, 8, 9}));
  EXPECT_EQ(list.of(Ids{4}, Ids{3}), (Ids{3})) << "a token without a pair";
  EXPECT_EQ(list.size(), 4);
}

TEST(Shortlist, TheFirstTokensOfTheVocabularyAreAlwaysThere) {
  const Shortlist list({{.src = 5, .tgt = 9}}, 10, 20, 3, 100);
  EXPECT_EQ(list.of(Ids{5}, {}), (Ids{0, 1, 2, 9}));
  const Shortlist all({{.src = 5, .tgt = 1}}, 10, 3, 100, 100);
  EXPECT_EQ(all.of(Ids{5}, {}), (Ids{0, 1, 2})) << "no more than there are";
}

TEST(Shortlist, OfATokenTheLikeliestPairsCountAndEqualOnesByNumber) {
  const std::vector<Shortlist::Pair> pairs{{.src = 5, .tgt = 9, .probability = 0.2},
                                           {.src = 5, .tgt = 8, .probability = 0.5},
                                           {.src = 5, .tgt = 7, .probability = 0.2},
                                           {.src = 5, .tgt = 8, .probability = 0.4}};
  EXPECT_EQ(Shortlist(pairs, 10, 20, 0, 1).of(Ids{5}, {}), (Ids{8}));
  EXPECT_EQ(Shortlist(pairs, 10, 20, 0, 2).of(Ids{5}, {}), (Ids{7, 8})) << "8 counts once";
}

TEST(Shortlist, RefusesPairsOfAnotherVocabulary) {
  for (const Shortlist::Pair& pair :
       {Shortlist::Pair{.src = 10, .tgt = 1}, Shortlist::Pair{.src = 1, .tgt = 20},
        Shortlist::Pair{.src = -1, .tgt = 1}}) {
    const auto error =
        testing::failure(ExitCode::kBadData, [&] { Shortlist({pair}, 10, 20, 0, 100); });
    EXPECT_NE(std::string(error.what()).find("outside of vocabularies of 10 and 20"),
              std::string::npos);
  }
}

/// Three lanes whose logits are 0, 1, 2, …, and in lane 1 NaN.
class RisingSteps : public StepModel {
 public:
  at::Tensor step(const at::Tensor& tokens) override {
    at::Tensor logits = at::arange(6, at::kFloat).expand({tokens.size(0), 6}).clone();
    if (tokens.size(0) > 1) logits[1].fill_(std::nanf(""));
    normalisers_ = at::logsumexp(logits, 1);
    return at::log_softmax(logits, 1);
  }
  void reorder(const std::vector<int64_t>& /*parents*/) override {}
  at::Tensor log_normalisers() const override { return normalisers_; }
  int64_t vocab_size() const override { return 6; }

 private:
  at::Tensor normalisers_;
};

TEST(ShortlistSteps, ProbabilitiesAreAmongTheListAndLogitsStay) {
  const auto steps = with_shortlists(std::make_unique<RisingSteps>(), {{1, 4}, {2}, {}}, 1);
  const at::Tensor rows = steps->step(at::zeros({3}, at::kLong));
  EXPECT_NEAR(rows[0].exp().sum().item<float>(), 1, 1e-6);
  EXPECT_NEAR(rows[0][4].item<float>() - rows[0][1].item<float>(), 3, 1e-6);
  EXPECT_EQ(rows[0][5].exp().item<float>(), 0);
  EXPECT_TRUE(rows[1].isnan().all().item<bool>());
  EXPECT_NEAR(rows[2].exp().sum().item<float>(), 1, 1e-6) << "all tokens";
  EXPECT_NEAR((rows[0][4] + steps->log_normalisers()[0]).item<float>(), 4, 1e-5);
}

TEST(ShortlistSteps, ListsFollowTheirLanes) {
  const auto steps = with_shortlists(std::make_unique<RisingSteps>(), {{1}, {2}}, 2);
  steps->reorder({3});
  const at::Tensor rows = steps->step(at::zeros({1}, at::kLong));
  EXPECT_NEAR(rows[0][2].item<float>(), 0, 1e-6);
}

}  // namespace
}  // namespace stretto::decoding
