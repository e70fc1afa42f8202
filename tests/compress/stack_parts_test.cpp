// Parts of layers that are taken out: which, and what is left.
#include "compress/stack_parts.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/decoders/transformer.h"
#include "models/encoders/bert.h"
#include "models/packed.h"
#include "models/parts.h"
#include "models/seq2seq_options.h"
#include "tests/compress/refused.h"
#include "tests/models/part_cases.h"

namespace stretto::compress {
namespace {

using test::expect_refused;

constexpr int64_t kVocabulary = 30;

models::BertOptions sizes(int64_t layers, int64_t heads, int64_t units) {
  models::BertOptions options;
  options.preset = "none";
  options.num_layers = layers;
  options.d_model = 16;
  options.num_heads = heads;
  options.head_dim = 4;
  options.ffn_dim = units;
  options.max_positions = 9;
  options.num_segments = 0;
  options.dropout = options.attention_dropout = 0;
  options.init_std = 0.3;
  return options;
}

std::shared_ptr<models::BertEncoder> encoder_of(const models::BertOptions& options) {
  return std::make_shared<models::BertEncoder>(
      options, models::PartSetup{.init = nn::Init(3, at::kCPU).child("encoder"),
                                 .rows = kVocabulary,
                                 .pad = 0,
                                 .first_site = models::kTextEncoderSites});
}

NamedTensors tensors_of(const torch::nn::Module& module) {
  NamedTensors all;
  for (const auto& item : module.named_parameters()) {
    all[item.key()] = item.value().detach().clone();
  }
  return all;
}

void load(const NamedTensors& tensors, const torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  const auto parameters = module.named_parameters();
  ASSERT_EQ(parameters.size(), tensors.size());
  for (const auto& item : parameters) {
    const auto found = tensors.find(item.key());
    ASSERT_NE(found, tensors.end()) << item.key();
    ASSERT_EQ(item.value().sizes(), found->second.sizes()) << item.key();
    item.value().copy_(found->second);
  }
}

torch::Tensor rows_of(models::BertEncoder& encoder) {
  data::PackedTokens tokens;
  tokens.append(std::vector<int64_t>{2, 9, 14, 3, 10, 12, 3});
  tokens.append(std::vector<int64_t>{3});
  tokens.append(std::vector<int64_t>{2, 20, 11, 3});
  const std::vector<int64_t> samples{17, 4, 99};
  const torch::NoGradGuard no_grad;
  return encoder.forward_of({}, models::pack_text(tokens, nullptr, &samples, at::kCPU), {});
}

StackShape shape_of_three() {
  return {.prefix = "encoder.",
          .num_layers = 3,
          .ffn_dim = 4,
          .num_heads = 4,
          .num_kv_heads = 2,
          .head_dim = 3};
}

StackImportance importance_of_three() {
  StackImportance importance;
  importance.layers = {2, 5, 2};
  importance.units = {{1, 2, 3, 4}, {4, 3, 2, 1}, {1, 1, 1, 1}};
  importance.heads = {{1, 2}, {2, 1}, {1, 1}};
  return importance;
}

TEST(ChooseParts, TheMostImportantStayInTheirOrder) {
  const auto choice = choose_parts(shape_of_three(), importance_of_three(),
                                   {.num_layers = 2, .ffn_dim = 2, .num_heads = 2});
  EXPECT_EQ(choice.layers, (std::vector<int64_t>{0, 1})) << "of equal ones the first";
  EXPECT_EQ(choice.units, (std::vector<std::vector<int64_t>>{{2, 3}, {0, 1}, {0, 1}}));
  EXPECT_EQ(choice.heads, (std::vector<std::vector<int64_t>>{{1}, {0}, {0}}));
  const StackShape left = shape_of(shape_of_three(), choice);
  EXPECT_EQ(left.num_layers, 2);
  EXPECT_EQ(left.ffn_dim, 2);
  EXPECT_EQ(left.num_heads, 2);
  EXPECT_EQ(left.num_kv_heads, 1);
  EXPECT_EQ(left.head_dim, 3);
}

TEST(ChooseParts, WithoutATargetAllStay) {
  const auto choice = choose_parts(shape_of_three(), importance_of_three(), {});
  EXPECT_EQ(shape_of(shape_of_three(), choice), shape_of_three());
}

TEST(ChooseParts, SharesLeaveWholeNumbers) {
  StackShape shape = shape_of_three();
  shape.ffn_dim = 100;
  const auto target = [&](const StackRemoval& removal) { return target_of(shape, removal); };
  EXPECT_EQ(target({}).num_layers, 0) << "as it is";
  EXPECT_EQ(target({.layers = 0.5}).num_layers, 2);
  EXPECT_EQ(target({.layers = 0.99}).num_layers, 1);
  EXPECT_EQ(target({.units = 0.5}).ffn_dim, 56);
  EXPECT_EQ(target({.units = 0.01}).ffn_dim, 100);
  EXPECT_EQ(target({.heads = 0.25}).num_heads, 4) << "two share their keys";
  EXPECT_EQ(target({.heads = 0.5}).num_heads, 2);
  for (const double share : {1.0, 1.5, -0.1}) {
    expect_refused([&] { target({.units = share}); }, "cannot be taken out");
  }
}

TEST(ChooseParts, RefuseWhatIsNotThere) {
  const auto choose = [](const StackTarget& target) {
    return [target] { choose_parts(shape_of_three(), importance_of_three(), target); };
  };
  expect_refused(choose({.num_layers = 4}), "`encoder.layers` has 3 layers");
  expect_refused(choose({.num_layers = -1}), "3 layers");
  expect_refused(choose({.ffn_dim = 5}), "4 units");
  expect_refused(choose({.num_heads = 6}), "4 heads");
  expect_refused(choose({.num_heads = 3}), "2 share keys and values");
  StackShape unknown = shape_of_three();
  unknown.num_heads = unknown.num_kv_heads = 0;
  expect_refused([&] { choose_parts(unknown, importance_of_three(), {.num_heads = 2}); },
                 "their number is not known");
}

TEST(StackParts, AreFoundByTheirNames) {
  const auto encoder = encoder_of(sizes(2, 4, 10));
  const auto stacks = find_stacks(tensors_of(*encoder), heads_of(*encoder));
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_EQ(stacks.front(), (StackShape{.prefix = "",
                                        .num_layers = 2,
                                        .ffn_dim = 10,
                                        .num_heads = 4,
                                        .num_kv_heads = 4,
                                        .head_dim = 4}));
  auto gated = sizes(1, 4, 10);
  gated.activation = "swiglu";
  const auto other = encoder_of(gated);
  EXPECT_TRUE(find_stacks(tensors_of(*other), heads_of(*other)).front().gated);
  NamedTensors with_lora = tensors_of(*encoder);
  with_lora["layers.0.ffn.up.lora_a"] = torch::zeros({2, 16});
  expect_refused([&] { find_stacks(with_lora, heads_of(*encoder)); }, "LoRA");
  EXPECT_TRUE(find_stacks({{"layers.0.weight", torch::zeros({2, 2})}}, heads_of(*encoder)).empty());
}

// Parts that add nothing: the outputs of what is left are those of the whole.
TEST(StackParts, WhatAddsNothingIsTakenOutAndNothingChanges) {
  for (const std::string activation : {"gelu", "swiglu"}) {
    auto options = sizes(2, 4, 10);
    options.activation = activation;
    options.norm = "pre";
    const auto whole = encoder_of(options);
    const auto parameters = whole->named_parameters();
    {
      const torch::NoGradGuard no_grad;
      for (const std::string layer : {"layers.0.", "layers.1."}) {
        const int64_t head = layer == "layers.0." ? 1 : 3;
        parameters[layer + "self_attention.out.weight"].narrow(1, 4 * head, 4).zero_();
        for (const int64_t unit : {0, 4, 5}) {
          parameters[layer + "ffn.down.weight"].narrow(1, unit, 1).zero_();
        }
      }
    }
    const NamedTensors tensors = tensors_of(*whole);
    PartImportance importance(find_stacks(tensors, heads_of(*whole)));
    importance.add_magnitudes(tensors);
    const StackShape shape = importance.shapes().front();
    const auto choice =
        choose_parts(shape, importance.stacks().front(), {.ffn_dim = 7, .num_heads = 3});
    EXPECT_EQ(choice.heads, (std::vector<std::vector<int64_t>>{{0, 2, 3}, {0, 1, 2}}));
    EXPECT_EQ(choice.units.front(), (std::vector<int64_t>{1, 2, 3, 6, 7, 8, 9}));
    auto smaller = sizes(2, 3, 7);
    smaller.activation = activation;
    smaller.norm = "pre";
    const auto left = encoder_of(smaller);
    load(without_parts(tensors, shape, choice), *left);
    EXPECT_TRUE(torch::allclose(rows_of(*left), rows_of(*whole), 1e-4, 1e-5)) << activation;
  }
}

TEST(StackParts, ALayerThatAddsNothingIsTakenOutAndTheOthersMoveUp) {
  auto options = sizes(3, 4, 10);
  options.norm = "pre";
  const auto whole = encoder_of(options);
  const auto parameters = whole->named_parameters();
  {
    const torch::NoGradGuard no_grad;
    for (const char* name : {"self_attention.out.weight", "self_attention.out.bias",
                             "ffn.down.weight", "ffn.down.bias"}) {
      parameters[std::string("layers.1.") + name].zero_();
    }
  }
  const NamedTensors tensors = tensors_of(*whole);
  PartImportance importance(find_stacks(tensors, heads_of(*whole)));
  importance.add_magnitudes(tensors);
  const StackShape shape = importance.shapes().front();
  const auto choice = choose_parts(shape, importance.stacks().front(), {.num_layers = 2});
  EXPECT_EQ(choice.layers, (std::vector<int64_t>{0, 2}));
  auto smaller = sizes(2, 4, 10);
  smaller.norm = "pre";
  const auto left = encoder_of(smaller);
  load(without_parts(tensors, shape, choice), *left);
  EXPECT_TRUE(torch::allclose(rows_of(*left), rows_of(*whole), 1e-5, 1e-6));
}

// Attention to another stack has as many heads as self-attention, but others may matter.
TEST(StackParts, HeadsOfAttentionToAnotherStackAreChosenByThemselves) {
  const auto decoder_of = [](int64_t num_heads) {
    models::Seq2SeqOptions options;
    options.d_model = models::testing::kWidth;
    const models::StackOptions stack{
        .num_layers = 2, .num_heads = num_heads, .ffn_dim = 20, .head_dim = 4};
    return std::make_shared<models::TransformerDecoder>(models::TransformerPart(options, stack),
                                                        models::testing::setup_of("decoder"));
  };
  const auto whole = decoder_of(4);
  const auto parameters = whole->named_parameters();
  const auto add_nothing = [&](const std::string& attention, int64_t head) {
    const torch::NoGradGuard no_grad;
    parameters["layers." + attention + "_attention.out.weight"].narrow(1, 4 * head, 4).zero_();
  };
  add_nothing("0.self", 0);
  add_nothing("0.cross", 2);
  add_nothing("1.self", 3);
  add_nothing("1.cross", 1);
  const NamedTensors tensors = tensors_of(*whole);
  PartImportance importance(find_stacks(tensors, heads_of(*whole)));
  importance.add_magnitudes(tensors);
  const StackShape shape = importance.shapes().front();
  EXPECT_TRUE(shape.has_cross_attention);
  const auto choice = choose_parts(shape, importance.stacks().front(), {.num_heads = 3});
  EXPECT_EQ(choice.heads, (std::vector<std::vector<int64_t>>{{1, 2, 3}, {0, 1, 2}}));
  EXPECT_EQ(choice.cross_heads, (std::vector<std::vector<int64_t>>{{0, 1, 3}, {0, 2, 3}}));
  const auto left = decoder_of(3);
  load(without_parts(tensors, shape, choice), *left);
  const data::Batch batch = models::testing::first_batch();
  const auto memory = models::testing::any_memory(batch, at::kFloat, /*has_values=*/false);
  const auto rows = [&](models::TransformerDecoder& decoder) {
    const torch::NoGradGuard no_grad;
    return decoder.forward(models::testing::targets(batch), memory, {});
  };
  EXPECT_TRUE(torch::allclose(rows(*left), rows(*whole), 1e-4, 1e-5));
}

// The gradient's importance is the slope of the loss along a factor of the part's output.
TEST(StackParts, ImportanceByGradientsIsTheSlopeAlongAFactor) {
  const auto encoder = encoder_of(sizes(1, 4, 10));
  optim::Arena arena(*encoder);
  data::PackedTokens tokens;
  tokens.append(std::vector<int64_t>{2, 9, 14, 3, 10});
  const std::vector<int64_t> samples{1};
  const auto input = models::pack_text(tokens, nullptr, &samples, at::kCPU);
  const torch::Tensor target = torch::linspace(-1, 1, 5 * 16).view({5, 16});
  const auto loss = [&] { return (encoder->forward_of({}, input, {}) * target).sum(); };
  PartImportance importance(find_stacks(tensors_of(*encoder), heads_of(*encoder)));
  arena.zero_grads();
  loss().backward();
  importance.add_gradients(arena);
  const auto slope = [&](const std::string& name, int64_t begin, int64_t count) {
    const torch::NoGradGuard no_grad;
    const torch::Tensor columns = encoder->named_parameters()[name].narrow(1, begin, count);
    constexpr double kStep = 1e-2;
    const torch::Tensor kept = columns.clone();
    columns.copy_(kept * (1 + kStep));
    const double above = loss().item<double>();
    columns.copy_(kept * (1 - kStep));
    const double below = loss().item<double>();
    columns.copy_(kept);
    return std::fabs(above - below) / (2 * kStep);
  };
  const auto& stack = importance.stacks().front();
  for (int64_t unit = 0; unit < 10; ++unit) {
    EXPECT_NEAR(stack.units[0][static_cast<size_t>(unit)],
                slope("layers.0.ffn.down.weight", unit, 1), 5e-3)
        << unit;
  }
  for (int64_t head = 0; head < 4; ++head) {
    EXPECT_NEAR(stack.heads[0][static_cast<size_t>(head)],
                slope("layers.0.self_attention.out.weight", 4 * head, 4), 5e-3)
        << head;
  }
}

}  // namespace
}  // namespace stretto::compress
