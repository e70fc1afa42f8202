#pragma once

#include <cstdint>
#include <string>

#include "config/field.h"

namespace stretto::models {

/// `[model.encoder]` or `[model.decoder]` with the name `transformer`: one stack of layers. What
/// the layers are like stands in `[model]`, for both.
struct StackOptions {
  static constexpr const char* kName = "transformer";

  int64_t num_layers = 6;
  int64_t num_heads = 8;
  int64_t ffn_dim = 2048;
  double layer_drop = 0.0;
  int64_t num_kv_heads = 0;

  static auto fields() {
    using namespace config;
    using O = StackOptions;
    return Fields{
        field(&O::num_layers, "num_layers", "layers of the stack", between(1, 1000))
            .also_called({"layers", "depth", "num_hidden_layers", "enc_depth", "dec_depth",
                          "n_layers", "nlayers"}),
        field(&O::num_heads, "num_heads", "attention heads; divides d_model", between(1, 1024),
              {.hidden_in_shapes = true})
            .also_called({"heads", "attention_heads", "nhead", "n_heads", "num_attention_heads",
                          "transformer_heads"}),
        field(&O::ffn_dim, "ffn_dim", "inner width of the feed-forward part", between(1, 1000000))
            .also_called({"ffn_embed_dim", "ffn_size", "dim_feedforward", "transformer_ff",
                          "transformer_dim_ffn", "d_ff", "ffn_hidden", "intermediate_size",
                          "inner_dim"}),
        field(&O::layer_drop, "layer_drop",
              "probability with which an update leaves out a whole layer, in training alone "
              "(Fan et al. 2019). Every micro-batch and process of the update leaves out the "
              "same layers",
              fraction())
            .also_called({"layerdrop", "encoder_layerdrop", "decoder_layerdrop"}),
        field(&O::num_kv_heads, "num_kv_heads",
              "heads of keys and values, each shared by num_heads / num_kv_heads heads of queries: "
              "1 is multi-query attention; 0 = num_heads",
              between(0, 1024))
            .also_called({"kv_heads", "n_kv_heads", "num_key_value_heads", "num_kv", "n_head_kv",
                          "multi_query", "multi_query_attention", "multiquery"}),
    };
  }
};

}  // namespace stretto::models
