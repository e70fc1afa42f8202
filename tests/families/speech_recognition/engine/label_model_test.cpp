#include "families/speech_recognition/engine/label_model.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <utility>
#include <vector>

#include "data/batch.h"
#include "models/causal_transformer_options.h"
#include "models/packed.h"

namespace stretto::tasks {
namespace {

constexpr int64_t kVocabulary = 8, kSeparator = 3;

class LabelModelTest : public ::testing::Test {
 protected:
  LabelModelTest() {
    models::CausalTransformerOptions options;
    options.preset = "none";
    options.num_layers = 1;
    options.d_model = 16;
    options.num_heads = 2;
    options.ffn_dim = 32;
    options.init_std = 0.4;
    model_ =
        models::make_causal_model({.model = options,
                                   .rows = kVocabulary,
                                   .num_ids = kVocabulary,
                                   .specials = {.pad = 0, .unk = 1, .bos = 2, .eos = kSeparator},
                                   .seed = 4},
                                  nullptr);
    model_->eval();
  }

  /// log p(token | tokens), of a model that reads all of them at once.
  double expected(const std::vector<int64_t>& tokens, int64_t token) {
    const torch::NoGradGuard no_grad;
    data::PackedTokens texts;
    texts.append(tokens);
    const auto rows = models::pack(texts, nullptr, at::kCPU);
    const auto pass = model_->forward(rows, {}, {});
    const auto last = models::last_rows(pass.rows, rows.offsets);
    return model_->head().log_probs(last)[0][token].item<double>();
  }

  std::shared_ptr<models::CausalModel> model_;
};

// Labels 0, 1, 2 are the tokens 5, 6 and none.
LabelModel::Tokens three_labels() {
  return {.ids = {5, 6, -1}, .begin = kSeparator, .end = kSeparator, .unknown = 1};
}

TEST_F(LabelModelTest, ScoresLabelsBehindWhatWasWritten) {
  const LabelModel model(model_, three_labels());
  const auto scorer = model.scorer();
  const uint32_t start = scorer->start();
  std::vector<decoding::TokenScore> first(3);
  scorer->score(std::vector<decoding::TokenQuery>{{start, 0}, {start, 1}, {start, 2}}, first);
  EXPECT_NEAR(first[0].log_prob, expected({kSeparator}, 5), 1e-5);
  EXPECT_NEAR(first[1].log_prob, expected({kSeparator}, 6), 1e-5);
  EXPECT_NEAR(first[2].log_prob, expected({kSeparator}, 1), 1e-5) << "the unknown token";
  std::vector<decoding::TokenScore> second(2);
  scorer->score(std::vector<decoding::TokenQuery>{{first[1].next, 0}, {first[0].next, 0}}, second);
  EXPECT_NEAR(second[0].log_prob, expected({kSeparator, 6}, 5), 1e-5);
  EXPECT_NEAR(second[1].log_prob, expected({kSeparator, 5}, 5), 1e-5);
  EXPECT_NEAR(scorer->end(second[0].next), expected({kSeparator, 6, 5}, kSeparator), 1e-5);
}

TEST_F(LabelModelTest, OneTextHasOneState) {
  const LabelModel model(model_, three_labels());
  const auto scorer = model.scorer();
  const uint32_t start = scorer->start();
  std::vector<decoding::TokenScore> twice(2);
  scorer->score(std::vector<decoding::TokenQuery>{{start, 0}, {start, 0}}, twice);
  EXPECT_EQ(twice[0].next, twice[1].next);
  EXPECT_EQ(scorer->num_states(), 2u);
}

TEST_F(LabelModelTest, StatesThatAreKeptGoOnAsBefore) {
  const LabelModel model(model_, three_labels());
  const auto scorer = model.scorer();
  const uint32_t start = scorer->start();
  std::vector<decoding::TokenScore> found(2);
  scorer->score(std::vector<decoding::TokenQuery>{{start, 0}, {start, 1}}, found);
  std::vector<uint32_t> kept{found[1].next};
  scorer->keep(kept);
  EXPECT_EQ(scorer->num_states(), 1u);
  std::vector<decoding::TokenScore> next(1);
  scorer->score(std::vector<decoding::TokenQuery>{{kept[0], 1}}, next);
  EXPECT_NEAR(next[0].log_prob, expected({kSeparator, 6}, 6), 1e-5);
}

}  // namespace
}  // namespace stretto::tasks
