// Adapters in whole models, which get them from their residual connections.
#include "nn/adapter.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <set>

#include "models/packed.h"
#include "models/text_model.h"
#include "nn/lora.h"
#include "optim/frozen_names.h"
#include "tests/models/part_cases.h"
#include "tests/train/bare_task.h"

namespace stretto::models {
namespace {

using testing::first_batch;
using testing::kRows;

/// Models with residual connections of every kind.
std::vector<Seq2SeqOptions> kinds_with_residuals() {
  std::vector<Seq2SeqOptions> kinds;
  for (const char* norm : {"post", "pre", "res_post"}) {
    kinds.push_back(stretto::test::small_options(/*layers=*/2));
    kinds.back().norm = norm;
  }
  kinds.push_back(stretto::test::small_options(/*layers=*/2));
  kinds.back().parallel_residual = true;
  LightEncoderOptions light;
  light.num_layers = 2;
  light.num_heads = 2;
  light.ffn_dim = 24;
  kinds.push_back(stretto::test::small_options(/*layers=*/2));
  kinds.back().encoder = light;
  for (auto& options : kinds) options.dropout = 0;
  return kinds;
}

/// Adapters get numbers everywhere, small enough for the model to stay itself.
int train_adapters(torch::nn::Module& model) {
  const torch::NoGradGuard no_grad;
  int tensors = 0;
  for (auto& item : model.named_parameters()) {
    if (!nn::is_adapter(item.key())) continue;
    const auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(++tensors));
    item.value().copy_(at::randn(item.value().sizes(), generator, at::kFloat) * 0.3);
  }
  return tensors;
}

std::set<std::string> adapted_parts(const torch::nn::Module& model) {
  constexpr std::string_view kDown = ".adapter.down.weight";
  std::set<std::string> names;
  for (const auto& item : model.named_parameters()) {
    if (!item.key().ends_with(kDown)) continue;
    names.insert(item.key().substr(0, item.key().size() - kDown.size()));
  }
  return names;
}

double loss_of(Seq2SeqModel& model) {
  const torch::NoGradGuard no_grad;
  return model.loss(first_batch(), {}).loss_sum.item<double>();
}

TEST(AdapterModels, BeginAsTheModelWithoutThem) {
  for (Seq2SeqOptions options : kinds_with_residuals()) {
    SCOPED_TRACE(options.norm + (options.parallel_residual ? ", parallel" : ""));
    const auto plain = stretto::test::small_transformer(options, kRows);
    options.adapter.dim = 5;
    const auto model = stretto::test::small_transformer(options, kRows);
    const auto named = model->named_parameters();
    for (const auto& item : plain->named_parameters()) {
      EXPECT_TRUE(at::equal(item.value(), named[item.key()])) << item.key();
    }
    EXPECT_EQ(loss_of(*model), loss_of(*plain)) << "the same bits";
    ASSERT_GT(train_adapters(*model), 0);
    EXPECT_GT(std::abs(loss_of(*model) - loss_of(*plain)), 1e-2) << "they change something";
  }
}

TEST(AdapterModels, HaveOneBehindEachPartOfALayer) {
  auto options = stretto::test::small_options(/*layers=*/1);
  options.adapter.dim = 2;
  EXPECT_EQ(
      adapted_parts(*stretto::test::small_transformer(options, kRows)),
      (std::set<std::string>{"encoder.layers.0.self_residual", "encoder.layers.0.ffn_residual",
                             "decoder.layers.0.self_residual", "decoder.layers.0.cross_residual",
                             "decoder.layers.0.ffn_residual"}));
  options.adapter.parts = {"*ffn*"};
  EXPECT_EQ(
      adapted_parts(*stretto::test::small_transformer(options, kRows)),
      (std::set<std::string>{"encoder.layers.0.ffn_residual", "decoder.layers.0.ffn_residual"}));
  options.parallel_residual = true;
  EXPECT_EQ(
      adapted_parts(*stretto::test::small_transformer(options, kRows)),
      (std::set<std::string>{"encoder.layers.0.residual.ffn", "decoder.layers.0.residual.ffn"}));
}

TEST(AdapterModels, DecodeStepByStepAsTeacherForcingDoes) {
  for (Seq2SeqOptions options : kinds_with_residuals()) {
    SCOPED_TRACE(options.norm + (options.parallel_residual ? ", parallel" : ""));
    options.adapter.dim = 5;
    const auto model = stretto::test::small_transformer(options, kRows);
    ASSERT_GT(train_adapters(*model), 0);
    const torch::NoGradGuard no_grad;
    const data::Batch batch = first_batch();
    const at::Tensor token_nll = model->loss(batch, {}).token_nll;
    const auto steps = model->start(data::source(batch), 1);
    // The first sequence: the same token for every lane.
    const auto& target = data::target(batch);
    int64_t before = stretto::testing::kSpecials.bos;
    for (int64_t t = 0; t < target.length(0); ++t) {
      const int64_t next = target.values[static_cast<size_t>(t)];
      const at::Tensor log_probs =
          steps->step(at::full({batch.num_sequences()}, before, at::kLong));
      EXPECT_NEAR(-log_probs[0][next].item<double>(), token_nll[t].item<double>(), 1e-4) << t;
      before = next;
    }
  }
}

TEST(AdapterModels, TrainBesideLora) {
  auto options = stretto::test::small_options(/*layers=*/1);
  options.adapter.dim = 2;
  options.lora = {.rank = 2, .maps = {"*"}};
  const auto model = stretto::test::small_transformer(options, kRows);
  optim::TrainingPlan plan;
  plan.adding.push_back({"model.lora", options.lora.train_patterns(), &nn::is_lora});
  plan.adding.push_back({"model.adapter", options.adapter.train_patterns(), &nn::is_adapter});
  int learned = 0;
  for (const auto& item : model->named_parameters()) {
    const std::string& name = item.key();
    EXPECT_EQ(plan.freezes({name}), !nn::is_adapter(name) && !nn::is_lora(name)) << name;
    EXPECT_FALSE(nn::is_adapter(name) && nn::is_lora(name)) << name;
    learned += plan.freezes({name}) ? 0 : 1;
  }
  EXPECT_GT(learned, 5 * 4);
}

TextModelSetup small_text_setup(const nn::AdapterOptions& adapter) {
  TextModelSetup setup;
  setup.model.preset = "none";
  setup.model.num_layers = 2;
  setup.model.d_model = 16;
  setup.model.num_heads = 2;
  setup.model.max_positions = 16;
  setup.model.adapter = adapter;
  setup.rows = 24;
  setup.num_ids = 21;
  setup.head = TextHeadKind::kLabels;
  setup.num_labels = 3;
  return setup;
}

nn::PackedRows small_texts() {
  data::PackedTokens tokens;
  for (const auto& ids : std::vector<std::vector<int64_t>>{{5, 6, 7, 8}, {9}, {10, 11}}) {
    tokens.append(ids);
  }
  const std::vector<int64_t> samples{17, 4, 99};
  return pack_text(tokens, nullptr, &samples, at::kCPU);
}

TEST(AdapterModels, OfTextBeginAsTheModelWithoutThem) {
  for (const char* norm : {"post", "pre"}) {
    SCOPED_TRACE(norm);
    auto setup = small_text_setup({});
    setup.model.norm = norm;
    const auto plain = make_text_model(setup);
    setup.model.adapter.dim = 5;
    const auto model = make_text_model(setup);
    const torch::NoGradGuard no_grad;
    const at::Tensor before = plain->encode(small_texts(), {});
    EXPECT_TRUE(at::equal(model->encode(small_texts(), {}), before)) << "the same bits";
    EXPECT_EQ(train_adapters(*model), 2 * 2 * 4);
    EXPECT_GT((model->encode(small_texts(), {}) - before).abs().max().item<double>(), 0.1);
  }
}

TEST(AdapterModels, OfTextTrainTheirHeadToo) {
  const nn::AdapterOptions adapter{.dim = 2, .parts = {"*ffn*"}};
  optim::TrainingPlan plan;
  plan.adding.push_back({"model.adapter", adapter.train_patterns(), &nn::is_adapter});
  int learned = 0;
  for (const auto& item : make_text_model(small_text_setup(adapter))->named_parameters()) {
    const bool trains = item.key().starts_with("head.") || nn::is_adapter(item.key());
    EXPECT_EQ(plan.freezes({item.key()}), !trains) << item.key();
    learned += nn::is_adapter(item.key()) ? 1 : 0;
  }
  EXPECT_EQ(learned, 2 * 4) << "one in each of two layers";
}

TEST(AdapterModels, CountTheirOperations) {
  constexpr int64_t kInner = 5;
  const auto plain = make_text_model(small_text_setup({}));
  const auto model = make_text_model(small_text_setup({.dim = kInner}));
  // A row of a layer: parts, matrices, multiplication and addition. The last layer has one row.
  const double of_layer = 2 * 2 * 2 * 16 * kInner;
  EXPECT_DOUBLE_EQ(model->operations(4, 1) - plain->operations(4, 1), (4 + 1) * of_layer);
}

}  // namespace
}  // namespace stretto::models
