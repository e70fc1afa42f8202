#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"

namespace stretto::models {

/// `[model.encoder]` or `[model.decoder]` with the name `transformer`: one stack of layers. What
/// the layers are like stands in `[model]`, for both (LayerStyle).
struct StackOptions {
  static constexpr const char* kName = "transformer";

  int64_t num_layers = 6;
  int64_t num_heads = 8;
  int64_t ffn_dim = 2048;
  double layer_drop = 0.0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;

  static auto fields() {
    using namespace config;
    using O = StackOptions;
    return Fields{
        field(&O::num_layers, "num_layers", "layers of the stack", between(1, 1000))
            .also_called({"layers", "depth", "num_hidden_layers", "enc_depth", "dec_depth",
                          "n_layers", "nlayers"}),
        field(&O::num_heads, "num_heads",
              "attention heads; divides d_model unless head_dim is given", between(1, 1024),
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
        field(&O::head_dim, "head_dim",
              "width of a head; 0 = d_model / num_heads. A model some of whose heads were taken "
              "out has one",
              between(0, 65536), {.hidden_in_shapes = true})
            .also_called({"attention_head_size", "d_kv"}),
    };
  }
};

/// The window of layer number `layer`, counted from 0, where layers have one of `window` tokens,
/// but those whose number, counted from 1, is a multiple of `full_every`; 0 = none.
inline int64_t window_of_layer(int64_t layer, int64_t window, int64_t full_every) {
  return full_every > 0 && (layer + 1) % full_every == 0 ? 0 : window;
}

/// What Transformer layers are like (Vaswani et al. 2017), and how their tokens know their places:
/// keys of `[model]`, which all stacks of a model read. Each stack has its own StackOptions beside.
///
/// The options of a model inherit it, and put its two groups of keys among their own:
///
///     struct ModelOptions : LayerStyle {
///       using Inherited = LayerStyle;  // config counts its members too
///       int64_t d_model = 512;
///       // fields(): LayerStyle::fields({"decoder.name"}), with field(&ModelOptions::d_model, …)
///     };
struct LayerStyle {
  std::string norm = "post";
  std::string norm_layer = "layer_norm";
  bool parallel_residual = false;
  bool zero_gamma = false;
  std::string activation = "relu";
  std::string positions = "sinusoidal";
  int64_t max_positions = 1024;
  int64_t max_distance = 16;
  double dropout = 0.1;
  double attention_dropout = 0.0;
  double activation_dropout = 0.0;

  /// The keys that choose the parts of a model, in its section: "decoder.name". A key of the style
  /// counts while one of these parts is a `transformer`; without such keys it always counts.
  using PartKeys = std::vector<std::string>;

  /// Norms, the activation, positions.
  static auto layer_fields(const PartKeys& parts) {
    using namespace config;
    using O = LayerStyle;
    const Meta hidden{.hidden_in_shapes = true};
    return Fields{
        field(&O::norm, "norm",
              "where each part is normalised: after the residual sum (Vaswani 2017), before the "
              "part, or its output before the sum (Swin v2)",
              one_of({"post", "pre", "res_post"}), hidden)
            .also_called({"encoder_normalize_before", "decoder_normalize_before",
                          "normalize_before", "norm_first", "pre_norm"},
                         "= \"pre\"")
            .also_called({"transformer_preprocess"}, "= \"pre\" for Marian's \"n\"")
            .also_called({"transformer_postprocess"}, "= \"post\" for Marian's \"dan\"")
            .also_called({"norm_position"})
            .value_also_called("post", {"postnorm", "post_norm", "post_ln", "after"})
            .value_also_called("pre", {"prenorm", "pre_norm", "pre_ln", "before"})
            .read_with_any(parts, {StackOptions::kName}),
        field(&O::norm_layer, "norm_layer",
              "over the width of each token (rms_norm: without a mean and without a bias), or each "
              "channel over all tokens of a micro-batch (see dist.batch_norm)",
              one_of({"layer_norm", "rms_norm", "batch_norm"}), hidden)
            .also_called({"norm_type", "layer_norm_type", "normalization"})
            .value_also_called("layer_norm", {"ln", "standard", "layer"})
            .value_also_called("rms_norm", {"rms", "rmsnorm", "t5_layer_norm"})
            .value_also_called("batch_norm", {"bn", "batch"})
            .read_with_any(parts, {StackOptions::kName}),
        field(&O::parallel_residual, "parallel_residual",
              "all parts of a layer read the same normed rows and are added at once (GPT-J, PaLM); "
              "for norm = \"pre\"",
              any(), hidden)
            .also_called(
                {"use_parallel_residual", "parallel_attn", "parallel_block", "parallel_layers"})
            .read_with_any(parts, {StackOptions::kName}),
        field(&O::zero_gamma, "zero_gamma",
              "norms start with a gain of 0, so that each part adds nothing at first; for norm = "
              "\"res_post\"",
              any())
            .also_called({"zero_init_residual", "zero_init_gamma", "zero_gain"})
            .read_with_any(parts, {StackOptions::kName}),
        field(&O::activation, "activation",
              "of the feed-forward part: gelu_tanh is GELU's approximation by tanh, silu is also "
              "called swish; swiglu has a third matrix",
              one_of({"relu", "gelu", "swiglu", "gelu_tanh", "silu"}), hidden)
            .also_called({"activation_fn", "activation_function", "pos_ffn_activation_fn",
                          "hidden_act", "transformer_ffn_activation"})
            .value_also_called("gelu_tanh", {"gelu_new", "gelu_fast", "gelu_pytorch_tanh"})
            .value_also_called("silu", {"swish"})
            .value_also_called("swiglu", {"silu_gated", "gated_silu", "swish_gated"})
            .value_also_called("relu", {"rectifier"})
            .read_with_any(parts, {StackOptions::kName}),
        field(&O::positions, "positions",
              "how a token knows its place. Vectors added to embeddings: sinusoidal (fairseq's "
              "table), marian (Marian's table of sinusoids), learned. Queries and keys turned: "
              "rotary. A bias of distances in self-attention: alibi, t5. Vectors of distances "
              "added to its keys: shaw",
              one_of({"sinusoidal", "learned", "rotary", "alibi", "t5", "shaw", "marian"}), hidden)
            .also_called({"position_encoding", "positional_encoding", "position_embeddings",
                          "position_embedding_type"})
            .also_called(
                {"encoder_learned_pos", "decoder_learned_pos", "transformer_train_positions"},
                "= \"learned\"")
            .also_called({"rope"}, "= \"rotary\"")
            .also_called({"use_alibi", "alibi_bias"}, "= \"alibi\"")
            .also_called({"relative_attention_num_buckets", "relative_positions_buckets"},
                         "= \"t5\", which has 32")
            .value_also_called("sinusoidal", {"sin", "sinusoid", "fixed"})
            .value_also_called("learned", {"absolute", "embedding", "trained"})
            .value_also_called("rotary", {"rope", "rotary_embedding"})
            .value_also_called("alibi", {"linear_bias", "linear_biases"})
            .value_also_called("t5", {"relative_bias", "relative_attention_bias", "bucketed"})
            .value_also_called("shaw", {"relative_key", "relative_keys", "relative_positions"})
            .read_with_any(parts, {StackOptions::kName}),
        field(&O::max_positions, "max_positions",
              "longest sequence of learned positions; of sinusoidal and marian: that of a model "
              "that `stretto export` writes",
              between(1, 1000000), {.unit = "tokens"})
            .also_called({"max_position_embeddings", "n_positions"})
            .read_with("positions", {"learned", "sinusoidal", "marian"}),
        field(&O::max_distance, "max_distance",
              "of shaw: distances beyond it share the vector of the farthest", between(1, 4096),
              {.unit = "tokens"})
            .also_called({"max_relative_positions", "max_relative_position"})
            .read_with("positions", {"shaw"}),
    };
  }

  static auto dropout_fields(const PartKeys& parts) {
    using namespace config;
    using O = LayerStyle;
    return Fields{
        field(&O::dropout, "dropout", "on embeddings and each part's output", fraction())
            .also_called({"dropout_rate", "hidden_dropout", "resid_dropout", "transformer_dropout",
                          "residual_dropout", "hidden_dropout_prob"})
            .read_with_any(parts, {StackOptions::kName}),
        field(&O::attention_dropout, "attention_dropout", "on attention weights", fraction())
            .also_called(
                {"attn_dropout", "transformer_dropout_attention", "attention_probs_dropout_prob"})
            .read_with_any(parts, {StackOptions::kName}),
        field(&O::activation_dropout, "activation_dropout", "after the feed-forward activation",
              fraction())
            .also_called({"relu_dropout", "ffn_dropout", "transformer_dropout_ffn"})
            .read_with_any(parts, {StackOptions::kName}),
    };
  }

  static auto fields(const PartKeys& parts = {}) {
    return layer_fields(parts).with(dropout_fields(parts));
  }
};

}  // namespace stretto::models
