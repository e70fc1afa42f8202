// Checkpoints, first weights and patterns hang on a tensor's name: none may ever change.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "models/registry.h"

namespace stretto::models {
namespace {

using Names = std::set<std::string>;

/// One layer a side, all that any Transformer has.
const Names kOfEveryTransformer{
    "encoder.layers.0.self_attention.qkv.weight",
    "encoder.layers.0.self_attention.qkv.bias",
    "encoder.layers.0.self_attention.out.weight",
    "encoder.layers.0.self_attention.out.bias",
    "encoder.layers.0.ffn.up.weight",
    "encoder.layers.0.ffn.down.weight",
    "encoder.layers.0.self_residual.norm.weight",
    "encoder.layers.0.self_residual.norm.bias",
    "encoder.layers.0.ffn_residual.norm.weight",
    "encoder.layers.0.ffn_residual.norm.bias",
    "decoder.layers.0.self_attention.qkv.weight",
    "decoder.layers.0.self_attention.qkv.bias",
    "decoder.layers.0.self_attention.out.weight",
    "decoder.layers.0.self_attention.out.bias",
    "decoder.layers.0.cross_attention.q.weight",
    "decoder.layers.0.cross_attention.q.bias",
    "decoder.layers.0.cross_attention.kv.weight",
    "decoder.layers.0.cross_attention.kv.bias",
    "decoder.layers.0.cross_attention.out.weight",
    "decoder.layers.0.cross_attention.out.bias",
    "decoder.layers.0.ffn.up.weight",
    "decoder.layers.0.ffn.down.weight",
    "decoder.layers.0.self_residual.norm.weight",
    "decoder.layers.0.self_residual.norm.bias",
    "decoder.layers.0.cross_residual.norm.weight",
    "decoder.layers.0.cross_residual.norm.bias",
    "decoder.layers.0.ffn_residual.norm.weight",
    "decoder.layers.0.ffn_residual.norm.bias",
};

/// What an option adds to them.
struct Row {
  std::string norm, norm_layer, activation, positions, tie_embeddings;
  std::vector<Names> added;
};

const Names kBiases{"encoder.layers.0.ffn.up.bias", "encoder.layers.0.ffn.down.bias",
                    "decoder.layers.0.ffn.up.bias", "decoder.layers.0.ffn.down.bias"};
const Names kFinalNorms{"encoder.final_norm.weight", "encoder.final_norm.bias",
                        "decoder.final_norm.weight", "decoder.final_norm.bias"};
const Names kPositions{"encoder.positions.weight", "decoder.positions.weight"};
const Names kDistanceBias{"encoder.distance_bias.weight", "decoder.distance_bias.weight"};
const Names kRelativeKeys{"encoder.layers.0.self_attention.relative_keys.weight",
                          "decoder.layers.0.self_attention.relative_keys.weight"};
const Names kOneTable{"embedding.weight"};
const Names kTwoTables{"encoder.embedding.weight", "decoder.embedding.weight"};
const Names kOutput{"output.weight"};

const std::vector<Row> kNamed{
    {"post", "layer_norm", "relu", "sinusoidal", "all", {kBiases, kOneTable}},
    {"post", "layer_norm", "gelu", "rotary", "decoder", {kBiases, kTwoTables}},
    {"post", "layer_norm", "swiglu", "learned", "none", {kPositions, kTwoTables, kOutput}},
    {"pre", "layer_norm", "relu", "sinusoidal", "all", {kBiases, kFinalNorms, kOneTable}},
    {"res_post", "layer_norm", "relu", "rotary", "all", {kBiases, kFinalNorms, kOneTable}},
    {"pre", "batch_norm", "swiglu", "sinusoidal", "all", {kFinalNorms, kOneTable}},
    {"post", "layer_norm", "silu", "marian", "all", {kBiases, kOneTable}},
    {"post", "layer_norm", "relu", "alibi", "all", {kBiases, kOneTable}},
    {"post", "layer_norm", "relu", "t5", "all", {kBiases, kDistanceBias, kOneTable}},
    {"post", "layer_norm", "relu", "shaw", "all", {kBiases, kRelativeKeys, kOneTable}},
};

Names parameters_of(const Row& row, bool parallel_residual = false) {
  Seq2SeqOptions options;
  options.d_model = 8;
  options.encoder = StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 12};
  options.decoder = options.encoder.as<StackOptions>();
  options.norm = row.norm;
  options.norm_layer = row.norm_layer;
  options.parallel_residual = parallel_residual;
  options.activation = row.activation;
  options.positions = row.positions;
  options.tie_embeddings = row.tie_embeddings;
  const auto model = make_model(
      options, {.src_rows = 9, .tgt_rows = 9, .num_tgt_classes = 9, .device = at::kMeta}, nullptr);
  Names names;
  for (const auto& item : model->named_parameters()) names.insert(item.key());
  return names;
}

TEST(ParameterNames, OfTheTransformerNeverChange) {
  for (const Row& row : kNamed) {
    Names expected = kOfEveryTransformer;
    for (const Names& names : row.added) expected.insert(names.begin(), names.end());
    EXPECT_EQ(parameters_of(row), expected)
        << row.norm << ", " << row.norm_layer << ", " << row.activation << ", " << row.positions
        << ", " << row.tie_embeddings;
  }
}

TEST(ParameterNames, OfRmsNormsAreTheirGainsAlone) {
  const Row rms{"pre", "rms_norm", "relu", "sinusoidal", "all", {}};
  Names expected = kOfEveryTransformer;
  for (const Names& names : {kBiases, kFinalNorms, kOneTable})
    expected.insert(names.begin(), names.end());
  std::erase_if(expected, [](const std::string& name) { return name.ends_with("norm.bias"); });
  EXPECT_EQ(parameters_of(rms), expected);
}

TEST(ParameterNames, OfAParallelLayerAreThoseOfItsPartsAndOneNorm) {
  const Row row{"pre", "layer_norm", "relu", "sinusoidal", "all", {}};
  Names expected = kOfEveryTransformer;
  for (const Names& names : {kBiases, kFinalNorms, kOneTable})
    expected.insert(names.begin(), names.end());
  std::erase_if(expected, [](const std::string& name) {
    return name.find("_residual.") != std::string::npos;
  });
  for (const std::string side : {"encoder", "decoder"}) {
    expected.insert(side + ".layers.0.residual.norm.weight");
    expected.insert(side + ".layers.0.residual.norm.bias");
  }
  EXPECT_EQ(parameters_of(row, /*parallel_residual=*/true), expected);
}

}  // namespace
}  // namespace stretto::models
