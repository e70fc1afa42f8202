#include "models/text_model.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "models/packed.h"

namespace stretto::models {
namespace {

TextModelSetup setup_of(TextHeadKind head) {
  TextModelSetup setup;
  setup.model.preset = "none";
  setup.model.num_layers = 1;
  setup.model.d_model = 8;
  setup.model.num_heads = 2;
  setup.model.max_positions = 16;
  setup.rows = 24;
  setup.num_ids = 21;
  setup.pad = 0;
  setup.head = head;
  setup.num_labels = head == TextHeadKind::kLabels ? 3 : 0;
  return setup;
}

nn::PackedRows input() {
  data::PackedTokens tokens;
  const std::vector<std::vector<int64_t>> texts{{5, 6, 7, 8}, {9}, {10, 11}};
  for (const auto& ids : texts) tokens.append(ids);
  const std::vector<int64_t> samples{17, 4, 99};
  return pack_text(tokens, nullptr, &samples, at::kCPU);
}

std::vector<std::string> head_tensors(const TextModelSetup& setup) {
  std::vector<std::string> names;
  for (const std::string& name : make_text_model(setup)->named_parameters().keys())
    if (name.starts_with("head.")) names.push_back(name);
  return names;
}

TEST(TextModel, NamesOfHeadsAreTheContract) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(
      head_tensors(setup_of(TextHeadKind::kLabels)),
      (Names{"head.pooler.weight", "head.pooler.bias", "head.output.weight", "head.output.bias"}));
  EXPECT_EQ(head_tensors(setup_of(TextHeadKind::kNone)),
            (Names{"head.pooler.weight", "head.pooler.bias"}));
  EXPECT_EQ(head_tensors(setup_of(TextHeadKind::kSpans)),
            (Names{"head.output.weight", "head.output.bias"}));
  Names masked = head_tensors(setup_of(TextHeadKind::kMaskedTokens));
  std::sort(masked.begin(), masked.end());
  EXPECT_EQ(masked, (Names{"head.bias", "head.dense.bias", "head.dense.weight", "head.norm.bias",
                           "head.norm.weight"}));
  TextModelSetup untied = setup_of(TextHeadKind::kMaskedTokens);
  untied.model.tie_embeddings = false;
  masked = head_tensors(untied);
  EXPECT_TRUE(std::find(masked.begin(), masked.end(), "head.output.weight") != masked.end());
}

TEST(TextModel, NamesOfTheEncoderAreTheContract) {
  TextModelSetup setup = setup_of(TextHeadKind::kSpans);
  setup.model.norm = "pre";
  const auto model = make_text_model(setup);
  const auto parameters = model->named_parameters();
  for (const char* name : {"encoder.embedding.weight",
                           "encoder.positions.weight",
                           "encoder.segments.weight",
                           "encoder.embedding_norm.weight",
                           "encoder.embedding_norm.bias",
                           "encoder.layers.0.self_attention.qkv.weight",
                           "encoder.layers.0.self_attention.qkv.bias",
                           "encoder.layers.0.self_attention.out.weight",
                           "encoder.layers.0.self_attention.out.bias",
                           "encoder.layers.0.self_residual.norm.weight",
                           "encoder.layers.0.self_residual.norm.bias",
                           "encoder.layers.0.ffn.up.weight",
                           "encoder.layers.0.ffn.up.bias",
                           "encoder.layers.0.ffn.down.weight",
                           "encoder.layers.0.ffn.down.bias",
                           "encoder.layers.0.ffn_residual.norm.weight",
                           "encoder.layers.0.ffn_residual.norm.bias",
                           "encoder.final_norm.weight",
                           "encoder.final_norm.bias",
                           "head.output.weight",
                           "head.output.bias"}) {
    EXPECT_TRUE(parameters.contains(name)) << name;
  }
  EXPECT_EQ(parameters.size(), 21u);
}

TEST(TextModel, AHeadThatTheOptionsTakeAwayIsNotBuilt) {
  TextModelSetup setup = setup_of(TextHeadKind::kMaskedTokens);
  setup.model.head = "none";
  setup.model.pooling = "mean";
  const auto model = make_text_model(setup);
  EXPECT_EQ(model->head_kind(), TextHeadKind::kNone);
  EXPECT_TRUE(head_tensors(setup).empty());
  EXPECT_THROW(model->masked_tokens(), c10::Error);
  EXPECT_THROW(model->spans(), c10::Error);
  const torch::NoGradGuard no_grad;
  const at::Tensor rows = model->encode(input(), {});
  EXPECT_TRUE(at::equal(model->pooled(input(), {}),
                        model->sentence_vectors(rows, input().offsets, "mean")));
}

TEST(TextModel, FirstWeightsDependOnSeedAndNameAlone) {
  const auto labels = make_text_model(setup_of(TextHeadKind::kLabels)),
             spans = make_text_model(setup_of(TextHeadKind::kSpans));
  const auto a = labels->named_parameters(), b = spans->named_parameters();
  for (const auto& item : b)
    if (item.key().starts_with("encoder.")) {
      EXPECT_TRUE(at::equal(item.value(), a[item.key()])) << item.key();
    }
  TextModelSetup other = setup_of(TextHeadKind::kSpans);
  other.seed = 2;
  EXPECT_FALSE(at::equal(make_text_model(other)->named_parameters()["head.output.weight"],
                         b["head.output.weight"]));
}

TEST(TextModel, RulesOfInitComeBeforeTheModels) {
  TextModelSetup setup = setup_of(TextHeadKind::kLabels);
  setup.model.init = {"head.output.weight zeros"};
  const auto parameters = make_text_model(setup)->named_parameters();
  EXPECT_EQ(parameters["head.output.weight"].abs().max().item<double>(), 0);
  EXPECT_GT(parameters["head.pooler.weight"].abs().max().item<double>(), 0);
  setup.model.init = {"head.* nonsense"};
  EXPECT_THROW(make_text_model(setup), Error);
}

TEST(TextModel, LowRankMapsAddNothingAtFirst) {
  TextModelSetup setup = setup_of(TextHeadKind::kLabels);
  const auto plain = make_text_model(setup);
  setup.model.lora.rank = 2;
  const auto adapted = make_text_model(setup);
  const auto parameters = adapted->named_parameters();
  EXPECT_TRUE(parameters.contains("encoder.layers.0.self_attention.qkv.lora_a"));
  EXPECT_TRUE(parameters.contains("encoder.layers.0.self_attention.out.lora_b"));
  EXPECT_FALSE(parameters.contains("head.output.lora_a"));
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(at::equal(adapted->encode(input(), {}), plain->encode(input(), {})));
}

TEST(TextModel, OptionsThatDoNotFitAreRefused) {
  TextModelSetup setup = setup_of(TextHeadKind::kSpans);
  setup.model.num_heads = 3;
  EXPECT_THROW(make_text_model(setup), Error);
}

TEST(TextModel, EveryParameterOfEveryHeadLearns) {
  for (const auto kind :
       {TextHeadKind::kMaskedTokens, TextHeadKind::kSpans, TextHeadKind::kLabels}) {
    const auto model = make_text_model(setup_of(kind));
    const ForwardContext training{.training = true, .dropout_key = 3};
    const at::Tensor rows = model->encode(input(), training);
    at::Tensor loss;
    if (kind == TextHeadKind::kMaskedTokens) {
      loss = model->masked_tokens()
                 .loss(rows.slice(0, 0, 4), at::tensor({5, 6, 20, 8}, at::kLong))
                 .loss_sum;
    } else if (kind == TextHeadKind::kSpans) {
      loss = span_losses(model->spans().scores(rows), {.offsets = input().offsets},
                         at::tensor({1, 0, 0}, at::kLong), at::tensor({2, 0, 1}, at::kLong))
                 .sum();
    } else {
      const at::Tensor logits = model->labels().logits(model->pooled(input(), training));
      loss = label_cross_entropy(logits, at::tensor({0, 2, 1}, at::kLong)).each.sum();
    }
    loss.backward();
    for (const auto& item : model->named_parameters())
      EXPECT_TRUE(item.value().grad().defined()) << item.key();
  }
}

TEST(TextModel, TiedTablesAreKnownByBothNames) {
  TextModelSetup setup = setup_of(TextHeadKind::kMaskedTokens);
  const auto tied = make_text_model(setup)->tied_names();
  ASSERT_EQ(tied.size(), 1u);
  EXPECT_EQ(tied[0].name, "head.output.weight");
  EXPECT_EQ(tied[0].parameter, "encoder.embedding.weight");
  EXPECT_EQ(make_text_model(setup)->vocabulary_tables().size(), 1u);
  setup.model.tie_embeddings = false;
  EXPECT_TRUE(make_text_model(setup)->tied_names().empty());
  EXPECT_EQ(make_text_model(setup)->vocabulary_tables().size(), 2u);
}

TEST(TextModel, CostIsThatOfItsProducts) {
  const auto model = make_text_model(setup_of(TextHeadKind::kMaskedTokens));
  const double layer = 2 * (4.0 * 8 * 8 + 2 * 8 * 32) + 4 * 8 * 10.0;
  const double head = 2 * 8 * 8 + 2 * 8 * 24;
  // Behind attention, the last layer computes the rows that the head reads.
  const double behind = 2 * (8 * 8 + 2 * 8 * 32);
  EXPECT_DOUBLE_EQ(model->operations(10, 2), 10 * layer - 8 * behind + 2 * head);
  EXPECT_DOUBLE_EQ(cost_of(*model, {.tokens = 10, .head_rows = 2}).training_flops,
                   3 * (10 * layer - 8 * behind + 2 * head) / 10);
  const auto spans = make_text_model(setup_of(TextHeadKind::kSpans));
  EXPECT_DOUBLE_EQ(spans->operations(10, 10), 10 * layer + 10 * 2 * 8 * 2);
}

TEST(TextModel, UnsetWeightsAndNoMemoryNeedNoNumbers) {
  TextModelSetup setup = setup_of(TextHeadKind::kMaskedTokens);
  setup.draws_weights = false;
  EXPECT_EQ(make_text_model(setup)->parameters().size(),
            make_text_model(setup_of(TextHeadKind::kMaskedTokens))->parameters().size());
  setup.device = at::kMeta;
  EXPECT_TRUE(make_text_model(setup)->parameters()[0].is_meta());
}

}  // namespace
}  // namespace stretto::models
