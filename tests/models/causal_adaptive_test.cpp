// Language models whose output projection is divided by groups of tokens.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "losses/registry.h"
#include "models/causal_model.h"
#include "models/option_conflicts.h"
#include "models/packed.h"
#include "models/registry.h"
#include "tests/base/failure.h"
#include "tests/models/part_cases.h"
#include "tests/text/special_ids.h"

namespace stretto::models {
namespace {

using stretto::testing::failure;
using testing::sequences;

/// Rows of the table, and tokens: 6, 5 and 10 of them in three softmaxes.
constexpr int64_t kGroupRows = 24, kGroupIds = 21;
const AdaptiveOptions kGroups{.cutoffs = {6, 11}, .div_value = 2};

/// A model of each kind, with one softmax.
std::vector<CausalModelOptions> whole_models(bool tied) {
  CausalTransformerOptions transformer;
  transformer.preset = "none";
  transformer.num_layers = 1;
  transformer.d_model = 16;
  transformer.num_heads = 2;
  transformer.ffn_dim = 20;
  transformer.dropout = 0;
  transformer.init_std = 0.4;
  transformer.tie_embeddings = tied;
  CausalLstmModelOptions lstm;
  lstm.num_layers = 1;
  lstm.d_model = 16;
  lstm.hidden_dim = 20;
  lstm.init_bound = lstm.embedding_bound = 0.4;
  lstm.tie_embeddings = tied;
  lstm.output_bias = false;
  return {transformer, lstm};
}

/// The same with groups of tokens.
std::vector<CausalModelOptions> divided_models(bool tied) {
  auto models = whole_models(tied);
  models[0].as<CausalTransformerOptions>().adaptive_softmax = kGroups;
  models[1].as<CausalLstmModelOptions>().adaptive_softmax = kGroups;
  return models;
}

CausalModelSetup divided_setup(const CausalModelOptions& options, int64_t num_ids = kGroupIds) {
  return {.model = options,
          .rows = kGroupRows,
          .num_ids = num_ids,
          .specials = stretto::testing::kSpecials,
          .seed = 3};
}

std::shared_ptr<CausalModel> divided_model(const CausalModelOptions& options) {
  return make_causal_model(divided_setup(options), losses::make_loss({}));
}

nn::PackedRows text_of(const std::vector<int64_t>& ids) {
  return pack(sequences({ids}), nullptr, at::kCPU);
}

std::vector<std::string> head_names(const CausalModel& model) {
  std::vector<std::string> names;
  for (const auto& item : model.named_parameters()) {
    if (item.key().starts_with("output")) names.push_back(item.key());
  }
  std::ranges::sort(names);
  return names;
}

// Checkpoints have these names.
TEST(CausalAdaptiveModel, NamesOfItsHeadNeverChange) {
  for (const auto& options : divided_models(/*tied=*/false)) {
    const auto model = divided_model(options);
    EXPECT_EQ(head_names(*model),
              (std::vector<std::string>{"output.tails.0.down.weight", "output.tails.0.weight",
                                        "output.tails.1.down.weight", "output.tails.1.weight",
                                        "output.weight"}));
    const int64_t width = model->width();
    auto parameters = model->named_parameters();
    EXPECT_EQ(parameters["output.weight"].sizes(), (std::vector<int64_t>{6 + 2, width}));
    EXPECT_EQ(parameters["output.tails.1.weight"].sizes(), (std::vector<int64_t>{10, width / 4}));
    ASSERT_EQ(model->vocabulary_tables().size(), 1U) << "no other has a row for each token";
    EXPECT_EQ(model->vocabulary_tables()[0].parameter, "decoder.embedding.weight");
    EXPECT_TRUE(model->tied_names().empty());
  }
  for (const auto& options : divided_models(/*tied=*/true)) {
    const auto model = divided_model(options);
    EXPECT_EQ(head_names(*model), std::vector<std::string>{"output.clusters"});
    EXPECT_EQ(model->vocabulary_tables().size(), 1U);
    EXPECT_EQ(model->tied_names().size(), 1U);
  }
}

TEST(CausalAdaptiveModel, LossesAreThoseOfItsProbabilitiesAndEveryParameterLearns) {
  const std::vector<int64_t> ids{5, 9, 14, 7, 10, 12, 3, 20};
  const at::Tensor next = at::tensor({9, 14, 7, 10, 12, 3, 20, 0}, at::kLong);
  for (const bool tied : {false, true}) {
    for (const auto& options : divided_models(tied)) {
      SCOPED_TRACE(options.name() + (tied ? ", tied" : ""));
      const auto model = divided_model(options);
      const at::Tensor rows = model->forward(text_of(ids), {}, {}).rows;
      const auto loss = model->head().loss(rows, {.labels = next});
      loss.loss_sum.backward();
      for (const auto& item : model->named_parameters()) {
        ASSERT_TRUE(item.value().grad().defined()) << item.key();
        EXPECT_GT(item.value().grad().abs().sum().item<double>(), 0) << item.key();
      }
      const torch::NoGradGuard no_grad;
      const at::Tensor log_p = model->head().log_probs(rows);
      EXPECT_EQ(log_p.sizes(), (std::vector<int64_t>{8, kGroupIds}));
      EXPECT_TRUE(at::allclose(log_p.exp().sum(1), at::ones({8}), 1e-5, 1e-5));
      const double sum = -log_p.gather(1, next.unsqueeze(1)).sum().item<double>();
      EXPECT_NEAR(loss.nll_sum.item<double>(), sum, 1e-4 * sum);
      const auto scored = model->head().loss(rows, {.labels = next});
      EXPECT_NEAR(scored.token_nll.sum().item<double>(), sum, 1e-4 * sum);
    }
  }
}

TEST(CausalAdaptiveModel, GenerationSeesTheWholeVocabulary) {
  const torch::NoGradGuard no_grad;
  for (const bool tied : {false, true}) {
    for (const auto& options : divided_models(tied)) {
      SCOPED_TRACE(options.name() + (tied ? ", tied" : ""));
      const auto model = divided_model(options);
      const auto steps = model->start(1, 1);
      EXPECT_EQ(steps->vocab_size(), kGroupIds);
      const at::Tensor first = steps->prefill(at::tensor({5, 9, 14}, at::kLong).view({1, 3}), 1);
      const at::Tensor second = steps->step(at::tensor({7}, at::kLong));
      const at::Tensor want =
          model->head().log_probs(model->forward(text_of({5, 9, 14, 7}), {}, {}).rows);
      EXPECT_TRUE(at::allclose(first[0], want[2], 1e-4, 1e-5));
      EXPECT_TRUE(at::allclose(second[0], want[3], 1e-4, 1e-5));
    }
  }
}

TEST(CausalAdaptiveModel, CostsLessThanOneSoftmax) {
  for (const bool tied : {false, true}) {
    const auto whole = whole_models(tied), divided = divided_models(tied);
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_LT(divided_model(divided[i])->operations(10), divided_model(whole[i])->operations(10));
    }
  }
}

std::string refusal_of(const CausalModelSetup& setup,
                       const losses::CrossEntropyOptions& loss = {}) {
  const Error error = failure(ExitCode::kUsage, [&] {
    make_causal_model(setup, losses::make_loss(loss), losses::make_pair_loss(loss));
  });
  return error.what();
}

TEST(CausalAdaptiveModel, RefusesWhatItCannotBe) {
  for (const bool tied : {false, true}) {
    for (const auto& options : divided_models(tied)) {
      SCOPED_TRACE(options.name());
      EXPECT_NO_THROW(make_causal_model(divided_setup(options, 13), losses::make_loss({})));
      EXPECT_EQ(refusal_of(divided_setup(options, 12)),
                "model.adaptive_softmax.cutoffs: a vocabulary of 12 tokens cannot be divided so: "
                "from cutoff 11 to 12 there are fewer than two tokens");
      EXPECT_EQ(refusal_of(divided_setup(options), {.r_drop = 1}),
                "model.adaptive_softmax.cutoffs: R-Drop takes no adaptive softmax");
    }
  }
  auto transformer = divided_models(/*tied=*/true)[0].as<CausalTransformerOptions>();
  transformer.logit_softcap = 30;
  EXPECT_TRUE(refusal_of(divided_setup(transformer)).starts_with("model.logit_softcap: "));
  transformer.logit_softcap = 0;
  transformer.adaptive_softmax.cutoffs = {11, 6};
  EXPECT_EQ(refusal_of(divided_setup(transformer)),
            "model.adaptive_softmax.cutoffs: from cutoff 11 to 6 there are fewer than two tokens");
  auto lstm = divided_models(/*tied=*/true)[1].as<CausalLstmModelOptions>();
  lstm.output_bias = true;
  EXPECT_TRUE(refusal_of(divided_setup(lstm)).starts_with("model.output_bias: "));
}

TEST(CausalAdaptiveModel, AVocabularyIsLargeEnoughOrNot) {
  const CausalModelOptions divided = divided_models(/*tied=*/true)[0];
  EXPECT_TRUE(vocabulary_conflicts(divided, 13).empty());
  ASSERT_EQ(vocabulary_conflicts(divided, 12).size(), 1U);
  EXPECT_TRUE(vocabulary_conflicts(whole_models(/*tied=*/true)[0], 1).empty());
}

}  // namespace
}  // namespace stretto::models
