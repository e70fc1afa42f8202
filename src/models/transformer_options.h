#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "config/field.h"

namespace stretto::models {

/// One stack of Transformer layers.
struct StackOptions {
  int64_t num_layers = 6;
  int64_t num_heads = 8;
  int64_t ffn_dim = 2048;

  static auto fields() {
    using namespace config;
    using O = StackOptions;
    return std::tuple{
        field(&O::num_layers, "num_layers", "layers of the stack", between(1, 1000)),
        field(&O::num_heads, "num_heads", "attention heads; divides d_model", between(1, 1024)),
        field(&O::ffn_dim, "ffn_dim", "inner width of the feed-forward part", between(1, 1000000)),
    };
  }
};

/// `[model]`: the encoder-decoder Transformer of Vaswani et al. 2017.
struct TransformerOptions {
  std::string name = "transformer";
  int64_t d_model = 512;
  StackOptions encoder, decoder;
  std::string norm = "post";
  std::string norm_layer = "layer_norm";
  bool zero_gamma = false;
  std::string activation = "relu";
  std::string positions = "sinusoidal";
  int64_t max_positions = 1024;
  std::string tie_embeddings = "all";
  double dropout = 0.1;
  double attention_dropout = 0.0;
  double activation_dropout = 0.0;

  static auto fields() {
    using namespace config;
    using O = TransformerOptions;
    return std::tuple{
        field(&O::name, "name", "which model", one_of({"transformer"})),
        field(&O::d_model, "d_model", "width of the residual stream", between(2, 65536)),
        field(&O::encoder, "encoder", "the encoder's stack"),
        field(&O::decoder, "decoder", "the decoder's stack"),
        field(&O::norm, "norm",
              "where each part is normalised: after the residual sum (Vaswani 2017), before the "
              "part, or its output before the sum (Swin v2)",
              one_of({"post", "pre", "res_post"})),
        field(&O::norm_layer, "norm_layer",
              "over the width of each token, or each channel over all tokens of a micro-batch (see "
              "dist.batch_norm)",
              one_of({"layer_norm", "batch_norm"})),
        field(&O::zero_gamma, "zero_gamma",
              "norms start with a gain of 0, so that each part adds nothing at first; for norm = "
              "\"res_post\"",
              any()),
        field(&O::activation, "activation", "of the feed-forward part; swiglu has a third matrix",
              one_of({"relu", "gelu", "swiglu"})),
        field(&O::positions, "positions", "how a token knows its place",
              one_of({"sinusoidal", "learned", "rotary"})),
        field(&O::max_positions, "max_positions", "longest sequence of learned positions",
              between(1, 1000000), {.unit = "tokens"}),
        field(&O::tie_embeddings, "tie_embeddings",
              "which of source embedding, target embedding and output projection share one matrix",
              one_of({"all", "decoder", "none"})),
        field(&O::dropout, "dropout", "on embeddings and each part's output", fraction()),
        field(&O::attention_dropout, "attention_dropout", "on attention weights", fraction()),
        field(&O::activation_dropout, "activation_dropout", "after the feed-forward activation",
              fraction()),
    };
  }
};

}  // namespace stretto::models
