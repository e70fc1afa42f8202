// Decoders that attend to their own tokens alone: language models.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "models/memory.h"
#include "models/registry.h"
#include "tests/models/padded_transformer.h"
#include "tests/models/part_cases.h"

namespace stretto::models {
namespace {

using testing::first_batch, testing::kRows, testing::kWidth, testing::targets;

const StackOptions kStackAlone{.num_layers = 2, .num_heads = 4, .ffn_dim = 20};

/// A style of layers; dropout is off.
struct StyleCase {
  std::string norm = "pre", norm_layer = "layer_norm", positions = "sinusoidal",
              activation = "gelu";
  bool parallel = false;
  int64_t num_kv_heads = 0;

  std::string name() const {
    return norm + " " + norm_layer + " " + positions + " " + activation + " " +
           (parallel ? "parallel " : "") + std::to_string(num_kv_heads);
  }
};

std::vector<StyleCase> style_cases() {
  return {
      {},
      {.norm = "post", .positions = "learned", .activation = "relu"},
      {.norm = "res_post", .positions = "t5"},
      {.norm_layer = "rms_norm", .positions = "rotary", .activation = "swiglu", .num_kv_heads = 2},
      {.positions = "alibi", .parallel = true, .num_kv_heads = 1},
      {.positions = "shaw"}};
}

Seq2SeqOptions options_with(const StyleCase& style) {
  Seq2SeqOptions options;
  options.d_model = kWidth;
  options.decoder = kStackAlone;
  options.decoder.as<StackOptions>().num_kv_heads = style.num_kv_heads;
  options.norm = style.norm;
  options.norm_layer = style.norm_layer;
  options.positions = style.positions;
  options.max_distance = 3;  // sequences are longer
  options.activation = style.activation;
  options.parallel_residual = style.parallel;
  options.tie_embeddings = "decoder";
  options.dropout = 0;
  return options;
}

PartSetup setup_without_memory() {
  PartSetup setup = testing::setup_of("decoder");
  setup.memory_width = std::nullopt;
  return setup;
}

std::shared_ptr<Decoder> decoder_alone(const StyleCase& style) {
  const Seq2SeqOptions options = options_with(style);
  return make_decoder(options.decoder, options, setup_without_memory());
}

std::vector<std::string> names_in_order(const torch::nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& item : module.named_parameters()) names.push_back(item.key());
  return names;
}

TEST(DecoderWithoutMemory, HasTheParametersOfOneWithMemoryButThoseThatReadIt) {
  for (const StyleCase& style : style_cases()) {
    SCOPED_TRACE(style.name());
    const Seq2SeqOptions options = options_with(style);
    const auto with = make_decoder(options.decoder, options, testing::setup_of("decoder"));
    std::vector<std::string> expected = names_in_order(*with);
    const size_t all = expected.size();
    std::erase_if(expected, [](const std::string& name) {
      return name.find(".cross_") != std::string::npos;
    });
    EXPECT_LT(expected.size(), all);
    const auto without = decoder_alone(style);
    EXPECT_EQ(names_in_order(*without), expected);
    for (const auto& item : without->named_parameters()) {
      EXPECT_TRUE(at::equal(item.value(), with->named_parameters()[item.key()])) << item.key();
    }
  }
}

TEST(DecoderWithoutMemory, RowsAndGradientsAreThoseOfAPaddedOne) {
  const data::Batch batch = first_batch();
  for (const StyleCase& style : style_cases()) {
    SCOPED_TRACE(style.name());
    struct : torch::nn::Module {
      using torch::nn::Module::register_module;
    } owner;
    const auto decoder = owner.register_module("decoder", decoder_alone(style));
    owner.to(at::kDouble);
    testing::PaddedTransformer padded(options_with(style), owner, kRows);
    const testing::Rectangle rectangle(data::target(batch));
    testing::expect_same(
        *decoder, [&] { return decoder->forward(targets(batch), {}, {}); },
        [&] { return rectangle.rows(padded.rows_without_memory(data::target(batch))); }, 1e-10);
    testing::expect_a_gradient_for_every_parameter(*decoder,
                                                   decoder->forward(targets(batch), {}, {}));
  }
}

TEST(DecoderWithoutMemory, NoRowSeesALaterToken) {
  for (const StyleCase& style : style_cases()) {
    SCOPED_TRACE(style.name());
    testing::expect_no_look_ahead(*decoder_alone(style), {}, first_batch());
  }
}

TEST(DecoderWithoutMemory, StepsAreTeacherForcing) {
  const data::Batch batch = first_batch();
  for (const StyleCase& style : style_cases()) {
    SCOPED_TRACE(style.name());
    const auto decoder = decoder_alone(style);
    testing::expect_steps_of_teacher_forcing(*decoder, no_memory(batch.num_sequences(), at::kCPU),
                                             batch, 1e-5);
    testing::expect_lanes_to_keep_their_histories(*decoder, no_memory(1, at::kCPU));
  }
}

TEST(DecoderWithoutMemory, DropoutDoesNotDependOnTheCutIntoMicroBatches) {
  const torch::NoGradGuard no_grad;
  Seq2SeqOptions options = options_with({});
  options.dropout = options.attention_dropout = options.activation_dropout = 0.3;
  const auto decoder = make_decoder(options.decoder, options, setup_without_memory());
  const auto rows_of = [&](const data::Batch& batch, uint64_t key) {
    return decoder->forward(targets(batch), {}, {.training = true, .dropout_key = key});
  };
  const data::Batch a = first_batch(), b = testing::second_batch();
  const at::Tensor parts = at::cat({rows_of(a, 5), rows_of(b, 5)});
  EXPECT_LT(testing::relative_distance(parts, rows_of(data::concatenate({a, b}), 5)), 1e-5);
  EXPECT_GT(testing::relative_distance(rows_of(a, 5), rows_of(a, 6)), 1e-3);
}

TEST(DecoderWithoutMemory, CostsNoAttentionToOne) {
  const Seq2SeqOptions options = options_with({});
  const auto decoder = decoder_alone({});
  EXPECT_EQ(decoder->memory_operations(), 0);
  EXPECT_EQ(decoder->operations(7, 100), decoder->operations(7, 0));
  const auto with = make_decoder(options.decoder, options, testing::setup_of("decoder"));
  // Two products of a row with a matrix for queries and one behind attention, in each layer.
  EXPECT_DOUBLE_EQ(with->operations(7, 0) - decoder->operations(7, 0),
                   2.0 * 2 * 2 * kWidth * kWidth);
}

TEST(DecoderWithoutMemory, LeavesOutLayersAsOneWithMemoryDoes) {
  Seq2SeqOptions options = options_with({});
  options.decoder.as<StackOptions>().layer_drop = 0.5;
  const auto decoder = make_decoder(options.decoder, options, setup_without_memory());
  std::set<double> sums;
  for (uint64_t key = 0; key < 64; ++key) {
    const at::Tensor rows =
        decoder->forward(targets(first_batch()), {}, {.training = true, .dropout_key = key});
    rows.sum().backward();
    sums.insert(rows.sum().item<double>());
  }
  EXPECT_EQ(sums.size(), 4u);  // each of two layers is there or is not
}

TEST(DecoderWithoutMemory, RefusesAMemoryAndAlignments) {
  const data::Batch batch = first_batch();
  const auto decoder = decoder_alone({});
  const Encoded memory = testing::any_memory(batch, at::kFloat, false);
  EXPECT_THROW(decoder->forward(targets(batch), memory, {}), c10::Error);
  EXPECT_THROW(decoder->start(memory, 1), c10::Error);
  EXPECT_THROW(decoder->attention(targets(batch), {}, -1), c10::Error);
  const Seq2SeqOptions options = options_with({});
  const auto with = make_decoder(options.decoder, options, testing::setup_of("decoder"));
  EXPECT_THROW(with->forward(targets(batch), {}, {}), c10::Error);
}

TEST(DecoderWithoutMemory, IsRefusedByKindsThatCannotDoWithout) {
  const LayerStyle style;
  EXPECT_THROW(make_decoder(LstmDecoderOptions{}, style, setup_without_memory()), c10::Error);
  EXPECT_THROW(make_decoder(ConvDecoderOptions{}, style, setup_without_memory()), c10::Error);
  EXPECT_THROW(make_decoder(LightDecoderOptions{}, style, setup_without_memory()), c10::Error);
  EXPECT_THROW(make_decoder(DynamicDecoderOptions{}, style, setup_without_memory()), c10::Error);
}

}  // namespace
}  // namespace stretto::models
