// The recurrent stack as a language model: what CausalModel adds to it.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "losses/registry.h"
#include "models/causal_model.h"
#include "models/packed.h"
#include "models/registry.h"
#include "tests/models/part_cases.h"
#include "tests/text/special_ids.h"

namespace stretto::models {
namespace {

using testing::relative_distance, testing::sequences;

constexpr int64_t kLstmRows = 24, kLstmIds = 21;

CausalLstmModelOptions lstm_options() {
  CausalLstmModelOptions options;
  options.num_layers = 2;
  options.d_model = 16;
  options.hidden_dim = 20;
  options.init_bound = 0.4;
  return options;
}

std::shared_ptr<CausalModel> lstm_model(const CausalLstmModelOptions& options) {
  return make_causal_model({.model = options,
                            .rows = kLstmRows,
                            .num_ids = kLstmIds,
                            .specials = stretto::testing::kSpecials,
                            .seed = 3},
                           losses::make_loss({}));
}

nn::PackedRows lanes_of(const std::vector<std::vector<int64_t>>& lanes) {
  std::vector<int64_t> samples{7, 9, 4};
  samples.resize(lanes.size());
  return pack(sequences(lanes), &samples, at::kCPU);
}

TEST(CausalLstmModel, HasAStateForEachLayerThatGoesOn) {
  const torch::NoGradGuard no_grad;
  const auto model = lstm_model(lstm_options());
  const auto shapes = model->carry_shapes();
  ASSERT_EQ(shapes.size(), 4u);
  EXPECT_EQ(shapes[0].name, "h.0");
  EXPECT_EQ(shapes[1].name, "c.0");
  EXPECT_EQ(shapes[0].width, 20);
  EXPECT_EQ(shapes[3].width, 16);  // the last layer is as wide as the tied table
  EXPECT_TRUE(carries_state(model->options()));
  EXPECT_EQ(model->width(), 16);

  const CausalPass whole = model->forward(lanes_of({{5, 9, 14, 7, 10}, {8, 6, 4, 4, 19}}), {}, {});
  const CausalPass first = model->forward(lanes_of({{5, 9}, {8, 6}}), model->first_carry(2), {});
  const CausalPass second = model->forward(lanes_of({{14, 7, 10}, {4, 4, 19}}), first.carry, {});
  const at::Tensor parts = at::cat({first.rows.slice(0, 0, 2), second.rows.slice(0, 0, 3),
                                    first.rows.slice(0, 2, 4), second.rows.slice(0, 3, 6)});
  EXPECT_LT(relative_distance(parts, whole.rows), 1e-6);
  for (size_t i = 0; i < shapes.size(); ++i) {
    EXPECT_LT(relative_distance(second.carry[i], whole.carry[i]), 1e-6) << shapes[i].name;
    EXPECT_EQ(whole.carry[i].sizes(), (std::vector<int64_t>{2, shapes[i].width}));
  }
  EXPECT_FALSE(whole.regulariser.defined());
}

TEST(CausalLstmModel, TrainingAddsItsRegulariserAndEveryParameterLearns) {
  const auto model = lstm_model(lstm_options());
  const ForwardContext context{.training = true, .dropout_key = 5};
  const CausalPass pass =
      model->forward(lanes_of({{5, 9, 14, 7}, {8, 6, 4, 19}}), model->first_carry(2), context);
  ASSERT_TRUE(pass.regulariser.defined());
  EXPECT_GT(pass.regulariser.item<double>(), 0);
  const at::Tensor next = at::tensor({9, 14, 7, 10, 6, 4, 19, 3}, at::kLong);
  (model->head().loss(pass.rows, {.labels = next}).loss_sum + pass.regulariser).backward();
  for (const auto& item : model->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_GT(item.value().grad().abs().sum().item<double>(), 0) << item.key();
  }
}

TEST(CausalLstmModel, TiesItsTableUnlessItIsTold) {
  const auto tied = lstm_model(lstm_options());
  const auto names_of = [](const CausalModel& model) {
    std::vector<std::string> names;
    for (const VocabularyTable& table : model.vocabulary_tables()) names.push_back(table.parameter);
    return names;
  };
  EXPECT_EQ(names_of(*tied), (std::vector<std::string>{"decoder.embedding.weight", "output.bias"}));
  EXPECT_TRUE(tied->named_parameters().contains("output.bias"));
  CausalLstmModelOptions options = lstm_options();
  options.tie_embeddings = options.output_bias = false;
  const auto untied = lstm_model(options);
  EXPECT_EQ(names_of(*untied),
            (std::vector<std::string>{"decoder.embedding.weight", "output.weight"}));
  EXPECT_EQ(untied->named_parameters()["output.weight"].sizes(),
            (std::vector<int64_t>{kLstmRows, 20}));
  // Both tables start within the same bounds.
  EXPECT_LE(untied->named_parameters()["output.weight"].abs().max().item<double>(),
            options.embedding_bound + 1e-6);
}

TEST(CausalLstmModel, GenerationGoesOnBehindPromptsOfAnyLengths) {
  const torch::NoGradGuard no_grad;
  const auto model = lstm_model(lstm_options());
  const auto steps = model->start(2, 1);
  ASSERT_TRUE(steps->takes_unequal_prompts());
  const at::Tensor first = steps->prefill_packed({.ids = {5, 9, 14, 8}, .lengths = {3, 1}}, 1);
  const at::Tensor second = steps->step(at::tensor({7, 6}, at::kLong));
  const at::Tensor rows = model->forward(lanes_of({{5, 9, 14, 7}, {8, 6}}), {}, {}).rows;
  const at::Tensor want = model->head().log_probs(rows);
  EXPECT_TRUE(at::allclose(first, want.index_select(0, at::tensor({2, 4}, at::kLong)), 1e-4, 1e-5));
  EXPECT_TRUE(
      at::allclose(second, want.index_select(0, at::tensor({3, 5}, at::kLong)), 1e-4, 1e-5));
}

}  // namespace
}  // namespace stretto::models
