#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "config/field.h"
#include "models/heads/adaptive_options.h"
#include "models/transformer_options.h"
#include "nn/adapter_options.h"
#include "nn/init_options.h"
#include "nn/lora_options.h"
#include "nn/rotary_options.h"

namespace stretto::models {

/// Sizes of a Transformer that is a language model.
struct CausalSizes {
  int64_t num_layers = 0, d_model = 0, num_heads = 0, ffn_dim = 0;
};

/// A preset by its name: sizes that GPT-2 was published with (Radford et al. 2019), and the two
/// that nanoGPT trains on characters.
struct CausalPreset {
  std::string_view name;
  CausalSizes sizes;
};

inline constexpr std::array<CausalPreset, 6> kCausalPresets{{
    {"nano", {4, 128, 4, 0}},
    {"mini", {6, 384, 6, 0}},
    {"small", {12, 768, 12, 0}},
    {"medium", {24, 1024, 16, 0}},
    {"large", {36, 1280, 20, 0}},
    {"xl", {48, 1600, 25, 0}},
}};

/// `[model]` of a language model with the name `transformer`: a stack of layers that attend to
/// earlier tokens alone. The defaults are GPT-2's form. Llama's:
///
///     norm_layer = "rms_norm"   norm_epsilon = 1e-5   activation = "swiglu"   biases = "none"
///     positions = "rotary"      tie_embeddings = false
///
/// Qwen2 has biases = "qkv", Qwen3 biases = "none" with qk_norm.
struct CausalTransformerOptions {
  static constexpr const char* kName = "transformer";

  std::string preset = "small";
  int64_t num_layers = 0;
  int64_t d_model = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn_dim = 0;
  std::string norm = "pre";
  std::string norm_layer = "layer_norm";
  double norm_epsilon = 1e-5;
  bool norm_bias = true;
  bool parallel_residual = false;
  std::string activation = "gelu_tanh";
  std::string biases = "all";
  bool qk_norm = false;
  std::string positions = "learned";
  int64_t max_positions = 1024;
  nn::RotaryOptions rope;
  int64_t sliding_window = 0;
  int64_t full_attention_every = 0;
  double attention_softcap = 0;
  double logit_softcap = 0;
  std::string embedding_scale = "none";
  bool tie_embeddings = true;
  bool output_bias = false;
  AdaptiveOptions adaptive_softmax;
  double dropout = 0.1;
  double attention_dropout = 0.0;
  double activation_dropout = 0.0;
  double layer_drop = 0.0;
  double init_std = 0.02;
  bool scale_residual_init = true;
  std::vector<std::string> init;
  nn::LoraOptions lora;
  nn::AdapterOptions adapter;

  static auto size_fields() {
    using namespace config;
    using O = CausalTransformerOptions;
    const Meta hidden{.hidden_in_shapes = true};
    return Fields{
        field(&O::preset, "preset",
              "sizes, layers / d_model / heads: nano 4/128/4, mini 6/384/6, and GPT-2's small "
              "12/768/12, medium 24/1024/16, large 36/1280/20, xl 48/1600/25; with none the keys "
              "below give them",
              one_of({"none", "nano", "mini", "small", "medium", "large", "xl"}))
            .also_called({"size", "model_size", "architecture", "model_type", "config_name"})
            .value_also_called("small", {"gpt2", "gpt2_small", "base"})
            .value_also_called("medium", {"gpt2_medium"})
            .value_also_called("large", {"gpt2_large"})
            .value_also_called("xl", {"gpt2_xl"}),
        field(&O::num_layers, "num_layers", "layers of the stack; 0 = as the preset",
              between(0, 1000))
            .also_called({"n_layer", "layers", "depth", "num_hidden_layers", "n_layers", "nlayers",
                          "decoder_layers"}),
        field(&O::d_model, "d_model", "width of the residual stream; 0 = as the preset",
              between(0, 65536))
            .also_called({"n_embd", "hidden_size", "dim", "width", "embed_dim", "decoder_embed_dim",
                          "model_dim", "embedding_size"}),
        field(&O::num_heads, "num_heads", "attention heads; 0 = as the preset", between(0, 1024),
              hidden)
            .also_called({"n_head", "heads", "num_attention_heads", "n_heads", "attention_heads",
                          "decoder_attention_heads"}),
        field(&O::num_kv_heads, "num_kv_heads",
              "heads of keys and values, each shared by num_heads / num_kv_heads heads of queries: "
              "1 is multi-query attention; 0 = num_heads",
              between(0, 1024))
            .also_called({"kv_heads", "n_kv_heads", "num_key_value_heads", "num_kv", "n_head_kv",
                          "multi_query", "multi_query_attention"}),
        field(&O::head_dim, "head_dim",
              "width of a head; 0 = d_model / num_heads, which must be whole", between(0, 65536),
              hidden)
            .also_called({"head_width", "head_size", "d_head", "kv_channels"}),
        field(&O::ffn_dim, "ffn_dim",
              "inner width of the feed-forward part; 0 = 4 d_model, with swiglu and geglu 8 / 3 "
              "d_model, rounded up to a multiple of 64",
              between(0, 1000000))
            .also_called({"n_inner", "intermediate_size", "hidden_dim", "ffn_size", "d_ff",
                          "dim_feedforward", "decoder_ffn_embed_dim", "ffn_embed_dim"}),
    };
  }

  static auto layer_fields() {
    using namespace config;
    using O = CausalTransformerOptions;
    const Meta hidden{.hidden_in_shapes = true};
    return Fields{
        field(&O::norm, "norm",
              "where each part is normalised: before it, after the residual sum, or its output "
              "before the sum",
              one_of({"pre", "post", "res_post"}), hidden)
            .also_called({"norm_first", "pre_norm", "normalize_before", "decoder_normalize_before"},
                         "= \"pre\"")
            .also_called({"norm_position"})
            .value_also_called("post", {"postnorm", "post_norm", "post_ln", "after"})
            .value_also_called("pre", {"prenorm", "pre_norm", "pre_ln", "before"}),
        field(&O::norm_layer, "norm_layer", "rms_norm: without a mean and without a bias",
              one_of({"layer_norm", "rms_norm"}), hidden)
            .also_called({"norm_type", "layer_norm_type", "normalization"})
            .value_also_called("layer_norm", {"ln", "standard", "layer"})
            .value_also_called("rms_norm", {"rms", "rmsnorm", "t5_layer_norm"}),
        field(&O::norm_epsilon, "norm_epsilon",
              "added to each variance; 1e-5 is GPT-2's and Llama's, 1e-6 Qwen's",
              {.min = 0, .max = 0.1, .min_open = true, .choices = {}}, hidden)
            .also_called({"layer_norm_epsilon", "layer_norm_eps", "norm_eps", "rms_norm_eps"}),
        field(&O::norm_bias, "norm_bias", "whether layer_norm adds a learned vector", any())
            .also_called({"elementwise_bias", "layer_norm_bias"})
            .read_with("norm_layer", {"layer_norm"}),
        field(&O::parallel_residual, "parallel_residual",
              "both parts of a layer read the same normed rows and are added at once (GPT-J, "
              "PaLM); for norm = \"pre\"",
              any(), hidden)
            .also_called(
                {"use_parallel_residual", "parallel_attn", "parallel_block", "parallel_layers"}),
        field(&O::activation, "activation",
              "of the feed-forward part: gelu_tanh is GPT-2's approximation of gelu, relu_squared "
              "the square of relu (So et al. 2021); swiglu and geglu have a third matrix",
              one_of({"gelu_tanh", "gelu", "relu", "relu_squared", "silu", "swiglu", "geglu"}),
              hidden)
            .also_called(
                {"hidden_act", "hidden_activation", "activation_fn", "activation_function"})
            .value_also_called("gelu", {"gelu_exact", "gelu_erf"})
            .value_also_called("gelu_tanh",
                               {"gelu_new", "gelu_fast", "gelu_pytorch_tanh", "gelu_approximate"})
            .value_also_called("relu_squared", {"relu2", "squared_relu", "relu_square"})
            .value_also_called("silu", {"swish"})
            .value_also_called("swiglu", {"silu_gated", "gated_silu", "swish_gated"})
            .value_also_called("geglu", {"gated_gelu", "gelu_gated"})
            .value_also_called("relu", {"rectifier"}),
        field(&O::biases, "biases",
              "which linear maps of a layer add a learned vector: all but those of swiglu and "
              "geglu (GPT-2), those of queries, keys and values alone (Qwen2), or none (Llama)",
              one_of({"all", "qkv", "none"}))
            .also_called({"bias", "attention_bias", "use_bias", "mlp_bias", "qkv_bias"})
            .value_also_called("all", {"true", "yes"})
            .value_also_called("none", {"false", "no"}),
        field(&O::qk_norm, "qk_norm",
              "rms_norm over each head of queries and of keys, before positions turn them (Qwen3)",
              any())
            .also_called({"use_qk_norm", "query_key_norm", "qk_layernorm", "use_query_key_norm"}),
        field(&O::positions, "positions",
              "how a token knows its place. Vectors added to embeddings: learned, sinusoidal. "
              "Queries and keys turned: rotary. A bias of distances: alibi, t5. Or not at all: "
              "none",
              one_of({"learned", "rotary", "sinusoidal", "alibi", "t5", "none"}), hidden)
            .also_called({"position_embedding_type", "position_encoding", "position_embeddings",
                          "positional_encoding"})
            .also_called({"decoder_learned_pos"}, "= \"learned\"")
            .also_called({"no_token_positional_embeddings"}, "= \"none\"")
            .value_also_called("learned", {"absolute", "embedding", "trained"})
            .value_also_called("rotary", {"rope", "rotary_embedding"})
            .value_also_called("sinusoidal", {"sin", "sinusoid", "fixed"})
            .value_also_called("none", {"nope", "no", "off"}),
        field(&O::max_positions, "max_positions",
              "longest sequence of learned positions; of others that of a model that `stretto "
              "export` writes",
              between(1, 100000000), {.unit = "tokens"})
            .also_called({"n_positions", "n_ctx", "block_size", "max_position_embeddings",
                          "context_length", "ctx_len"}),
        field(&O::rope, "rope", "the angles of positions = \"rotary\"")
            .also_called({"rotary", "rope_parameters"}),
    };
  }

  static auto attention_fields() {
    using namespace config;
    using O = CausalTransformerOptions;
    const Meta hidden{.hidden_in_shapes = true};
    return Fields{
        field(&O::sliding_window, "sliding_window",
              "a token attends to itself and to this number less one before it; 0 = to all",
              between(0, 100000000), {.unit = "tokens", .hidden_in_shapes = true})
            .also_called({"attention_window", "window_size", "local_attention", "attn_window"}),
        field(&O::full_attention_every, "full_attention_every",
              "every layer whose number, counted from 1, is a multiple of this has no window (2 in "
              "Gemma 2, 6 in Gemma 3); 0 = none",
              between(0, 1000), hidden)
            .also_called({"sliding_window_pattern", "global_attention_every"})
            .read_unless_zero("sliding_window"),
        field(&O::attention_softcap, "attention_softcap",
              "scores of attention are bent into ± this number by tanh (Gemma 2: 50); 0 = off",
              at_least(0), hidden)
            .also_called({"attn_logit_softcapping", "attn_logit_softcap", "logits_soft_cap"}),
        field(&O::logit_softcap, "logit_softcap",
              "so are the logits of the next token (Gemma 2: 30); 0 = off", at_least(0), hidden)
            .also_called({"final_logit_softcapping", "final_logit_softcap", "output_softcap"}),
    };
  }

  static auto training_fields() {
    using namespace config;
    using O = CausalTransformerOptions;
    return Fields{
        field(&O::embedding_scale, "embedding_scale",
              "token vectors are multiplied by nothing, or by sqrt(d_model) (Gemma)",
              one_of({"none", "sqrt"}), {.hidden_in_shapes = true})
            .also_called({"scale_embedding", "embed_scale", "scale_embeddings"},
                         "= \"sqrt\" for true, \"none\" for false")
            .value_also_called("sqrt", {"true", "yes", "sqrt_d_model", "sqrt_dim"})
            .value_also_called("none", {"false", "no", "off"}),
        field(&O::tie_embeddings, "tie_embeddings", "the output projection is the table of tokens",
              any())
            .also_called({"tie_word_embeddings", "tie_weights", "share_embeddings", "tied",
                          "share_decoder_input_output_embed"}),
        field(&O::output_bias, "output_bias",
              "whether the output projection adds a learned number for each token", any())
            .also_called({"final_logits_bias", "logits_bias", "lm_head_bias"}),
        field(&O::adaptive_softmax, "adaptive_softmax", kAdaptiveHelp),
        field(&O::dropout, "dropout", "on embeddings and each part's output", fraction())
            .also_called({"dropout_rate", "hidden_dropout", "resid_pdrop", "embd_pdrop",
                          "resid_dropout", "residual_dropout", "hidden_dropout_prob"}),
        field(&O::attention_dropout, "attention_dropout", "on attention weights", fraction())
            .also_called({"attn_dropout", "attn_pdrop", "attention_probs_dropout_prob"}),
        field(&O::activation_dropout, "activation_dropout", "after the feed-forward activation",
              fraction())
            .also_called({"relu_dropout", "ffn_dropout"}),
        field(&O::layer_drop, "layer_drop",
              "probability with which an update leaves out a whole layer, in training alone "
              "(Fan et al. 2019)",
              fraction())
            .also_called({"layerdrop", "decoder_layerdrop"}),
        field(&O::init_std, "init_std",
              "deviation of the first weights of matrices and tables: normal; biases start at 0",
              {.min = 0, .max = 10, .min_open = true, .choices = {}})
            .also_called({"initializer_range"}),
        field(&O::scale_residual_init, "scale_residual_init",
              "the last map of each part starts smaller by sqrt(2 num_layers) (GPT-2)", any())
            .also_called({"scale_init", "residual_init_scaling"}),
        nn::init_field(&O::init),
        field(&O::lora, "lora", "low-rank adaptation of linear maps, for fine-tuning")
            .also_called({"peft"}),
        field(&O::adapter, "adapter", "bottleneck adapters behind parts, for fine-tuning")
            .also_called({"adapters", "bottleneck_adapter"}),
    };
  }

  static auto fields() {
    return size_fields().with(layer_fields()).with(attention_fields()).with(training_fields());
  }

  bool is_gated() const { return activation == "swiglu" || activation == "geglu"; }
  /// The longest sequence that there are positions for.
  int64_t max_length() const {
    return positions == "learned" ? max_positions : std::numeric_limits<int64_t>::max();
  }
  /// The window of layer number `layer`, counted from 0; 0 = it attends to all earlier tokens.
  int64_t window_of(int64_t layer) const {
    return window_of_layer(layer, sliding_window, full_attention_every);
  }
};

/// The sizes of a preset; all 0 of "none", and of a name that is not known.
inline CausalSizes sizes_of_causal_preset(std::string_view name) {
  for (const CausalPreset& preset : kCausalPresets) {
    if (preset.name == name) return preset.sizes;
  }
  return {};
}

/// The sizes of the model: each key that is given, else the preset's; 0 where neither says one
/// (models/option_conflicts.h refuses it). A ffn_dim that is not given follows from d_model.
inline CausalSizes sizes_of(const CausalTransformerOptions& options) {
  const CausalSizes preset = sizes_of_causal_preset(options.preset);
  const auto given = [](int64_t key, int64_t of_preset) { return key > 0 ? key : of_preset; };
  CausalSizes sizes{.num_layers = given(options.num_layers, preset.num_layers),
                    .d_model = given(options.d_model, preset.d_model),
                    .num_heads = given(options.num_heads, preset.num_heads)};
  const int64_t gated = (8 * sizes.d_model + 2) / 3;
  sizes.ffn_dim =
      given(options.ffn_dim, options.is_gated() ? (gated + 63) / 64 * 64 : 4 * sizes.d_model);
  return sizes;
}

}  // namespace stretto::models
