#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "config/field.h"
#include "nn/adapter_options.h"
#include "nn/init_options.h"
#include "nn/lora_options.h"

namespace stretto::models {

/// Sizes of an encoder of text.
struct BertSizes {
  int64_t num_layers = 0, d_model = 0, num_heads = 0, ffn_dim = 0;
};

/// A preset by its name: sizes of the models that Devlin et al. 2018 (arXiv:1810.04805, base and
/// large) and Turc et al. 2019 (arXiv:1908.08962, the small ones) published.
struct BertPreset {
  std::string_view name;
  BertSizes sizes;
};

inline constexpr std::array<BertPreset, 6> kBertPresets{{
    {"tiny", {2, 128, 2, 512}},
    {"mini", {4, 256, 4, 1024}},
    {"small", {4, 512, 8, 2048}},
    {"medium", {8, 512, 8, 2048}},
    {"base", {12, 768, 12, 3072}},
    {"large", {24, 1024, 16, 4096}},
}};

/// `[model]` of masked_lm, question_answering and text_classification: an encoder like BERT's or
/// RoBERTa's (models/encoders/bert.h), with the head that the task needs.
struct BertOptions {
  static constexpr const char* kName = "bert";

  std::string preset = "base";
  int64_t num_layers = 0;
  int64_t d_model = 0;
  int64_t num_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn_dim = 0;
  std::string activation = "gelu";
  std::string norm = "post";
  std::string norm_layer = "layer_norm";
  double norm_epsilon = 1e-12;
  std::string positions = "learned";
  int64_t max_positions = 512;
  int64_t num_segments = 2;
  double dropout = 0.1;
  double attention_dropout = 0.1;
  double activation_dropout = 0.0;
  double head_dropout = 0.1;
  std::string pooling = "cls_tanh";
  bool tie_embeddings = true;
  std::vector<std::string> init;
  double init_std = 0.02;
  nn::LoraOptions lora;
  nn::AdapterOptions adapter;
  std::string head = "auto";

  static auto fields() {
    using namespace config;
    using O = BertOptions;
    const Meta hidden{.hidden_in_shapes = true};
    return Fields{
        field(&O::preset, "preset",
              "sizes as published, layers / d_model / heads: tiny 2/128/2, mini 4/256/4, small "
              "4/512/8, medium 8/512/8, base 12/768/12, large 24/1024/16; with none the keys below "
              "give them",
              one_of({"none", "tiny", "mini", "small", "medium", "base", "large"}))
            .also_called({"type", "arch", "architecture", "model_type", "size", "config_name"})
            .also_called({"name", "model_name_or_path"},
                         "it gives sizes, and weights begin anew; to fine-tune a published model, "
                         "download its folder and set train.init_from to it")
            .value_also_called("base", {"bert_base", "roberta_base", "bert", "roberta"})
            .value_also_called("base", {"bert_base_uncased", "bert_base_cased"},
                               "for its sizes; its weights come with train.init_from = its folder")
            .value_also_called("large", {"bert_large", "roberta_large"})
            .value_also_called("large", {"bert_large_uncased", "bert_large_cased"},
                               "for its sizes; its weights come with train.init_from = its folder")
            .value_also_called("tiny", {"bert_tiny"})
            .value_also_called("mini", {"bert_mini"})
            .value_also_called("small", {"bert_small"})
            .value_also_called("medium", {"bert_medium"}),
        field(&O::num_layers, "num_layers", "layers of the encoder; 0 = as the preset",
              between(0, 1000))
            .also_called(
                {"layers", "depth", "num_hidden_layers", "n_layers", "nlayers", "encoder_layers"}),
        field(&O::d_model, "d_model", "width of the residual stream; 0 = as the preset",
              between(0, 65536))
            .also_called({"hidden_size", "dim", "width", "embed_dim", "encoder_embed_dim",
                          "model_dim", "embedding_size"}),
        field(&O::num_heads, "num_heads",
              "attention heads; divides d_model unless head_dim is given; 0 = as the preset",
              between(0, 1024), hidden)
            .also_called({"heads", "num_attention_heads", "n_heads", "attention_heads",
                          "encoder_attention_heads"}),
        field(&O::head_dim, "head_dim",
              "width of a head; 0 = d_model / num_heads. A model some of whose heads were taken "
              "out has one",
              between(0, 65536), hidden)
            .also_called({"attention_head_size", "d_kv"}),
        field(&O::ffn_dim, "ffn_dim", "inner width of the feed-forward part; 0 = 4 d_model",
              between(0, 1000000))
            .also_called({"intermediate_size", "hidden_dim", "ffn_size", "dim_feedforward",
                          "encoder_ffn_embed_dim", "ffn_embed_dim"}),
        field(&O::activation, "activation",
              "of the feed-forward part: gelu is exact, gelu_tanh its approximation; geglu and "
              "swiglu have a third matrix and no biases",
              one_of({"gelu", "gelu_tanh", "relu", "geglu", "swiglu"}), hidden)
            .also_called(
                {"hidden_act", "hidden_activation", "activation_fn", "activation_function"})
            .value_also_called("gelu", {"gelu_exact", "gelu_erf"})
            .value_also_called("gelu_tanh",
                               {"gelu_new", "gelu_fast", "gelu_pytorch_tanh", "gelu_approximate"})
            .value_also_called("geglu", {"gated_gelu", "gelu_gated"})
            .value_also_called("swiglu", {"silu_gated", "gated_silu", "swish_gated"})
            .value_also_called("relu", {"rectifier"}),
        field(&O::norm, "norm",
              "where each part is normalised: after the residual sum (BERT), or before the part, "
              "with one more norm behind the last layer",
              one_of({"post", "pre"}), hidden)
            .also_called({"norm_first", "pre_norm", "normalize_before", "encoder_normalize_before"},
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
              "added to each variance; 1e-12 is BERT's, 1e-5 RoBERTa's",
              {.min = 0, .max = 0.1, .min_open = true, .choices = {}}, hidden)
            .also_called({"layer_norm_eps", "norm_eps", "layer_norm_epsilon", "rms_norm_eps"}),
        field(&O::positions, "positions",
              "how a token knows its place: vectors added to embeddings (learned, sinusoidal), or "
              "queries and keys turned (rotary)",
              one_of({"learned", "rotary", "sinusoidal"}), hidden)
            .also_called({"position_embedding_type", "position_encoding", "position_embeddings",
                          "positional_encoding"})
            .also_called({"rope"}, "= \"rotary\"")
            .also_called({"sinusoidal_pos_embds"}, "= \"sinusoidal\"")
            .value_also_called("learned", {"absolute", "embedding", "trained"})
            .value_also_called("rotary", {"rope", "rotary_embedding"})
            .value_also_called("sinusoidal", {"sin", "sinusoid", "fixed"}),
        field(&O::max_positions, "max_positions", "longest sequence of learned positions",
              between(1, 1000000), {.unit = "tokens"})
            .also_called({"max_position_embeddings", "n_positions"},
                         "RoBERTa's has two rows more, which no token reads")
            .read_with("positions", {"learned"}),
        field(&O::num_segments, "num_segments",
              "kinds of tokens that have a vector each: BERT's first and second text; 0 = none",
              between(0, 1024))
            .also_called({"type_vocab_size", "token_types", "num_token_types"}),
        field(&O::dropout, "dropout", "on embeddings and each part's output", fraction())
            .also_called(
                {"hidden_dropout_prob", "dropout_rate", "hidden_dropout", "resid_dropout"}),
        field(&O::attention_dropout, "attention_dropout", "on attention weights", fraction())
            .also_called({"attention_probs_dropout_prob", "attn_dropout"}),
        field(&O::activation_dropout, "activation_dropout", "after the feed-forward activation",
              fraction())
            .also_called({"relu_dropout", "ffn_dropout"}),
        field(&O::head_dropout, "head_dropout", "on the pooled rows that labels are read from",
              fraction())
            .also_called(
                {"classifier_dropout", "pooler_dropout", "seq_classif_dropout", "qa_dropout"}),
        field(&O::pooling, "pooling",
              "the one row of a text. cls: that of its first token. cls_tanh, cls_relu: the "
              "same behind a layer with tanh (BERT) or relu (DistilBERT). mean: the mean of "
              "all rows",
              one_of({"cls_tanh", "cls_relu", "cls", "mean"}))
            .also_called({"pooler", "pooler_type", "classifier_pooling", "pooling_mode"})
            .value_also_called("cls_tanh", {"pooler", "cls_pooler", "bert_pooler"})
            .value_also_called("cls", {"first", "first_token", "cls_token"})
            .value_also_called("mean", {"average", "avg", "mean_tokens"}),
        field(&O::tie_embeddings, "tie_embeddings",
              "masked_lm alone: the output projection is the table of tokens", any())
            .also_called({"tie_word_embeddings", "tie_weights", "share_embeddings"}),
        nn::init_field(&O::init),
        field(&O::init_std, "init_std",
              "deviation of the first weights of matrices: normal, drawn again beyond twice of it; "
              "biases start at 0",
              {.min = 0, .max = 10, .min_open = true, .choices = {}})
            .also_called({"initializer_range"}),
        field(&O::lora, "lora", "low-rank adaptation of linear maps, for fine-tuning"),
        field(&O::adapter, "adapter", "bottleneck adapters behind parts, for fine-tuning")
            .also_called({"adapters", "bottleneck_adapter"}),
        field(&O::head, "head",
              "what stands behind the encoder: what the task needs, or nothing, as in a model that "
              "was imported without one; then it only embeds",
              one_of({"auto", "none"}))
            .value_also_called("none", {"encoder", "no_head", "false"}),
    };
  }
};

/// The sizes of a preset; all 0 of "none", and of a name that is not known.
inline BertSizes sizes_of_preset(std::string_view name) {
  for (const BertPreset& preset : kBertPresets) {
    if (preset.name == name) return preset.sizes;
  }
  return {};
}

/// The sizes of the model: each key that is given, else the preset's; 0 where neither says one
/// (models/option_conflicts.h refuses it). A ffn_dim that is not given is 4 d_model.
inline BertSizes sizes_of(const BertOptions& options) {
  const BertSizes preset = sizes_of_preset(options.preset);
  const auto given = [](int64_t key, int64_t of_preset) { return key > 0 ? key : of_preset; };
  BertSizes sizes{.num_layers = given(options.num_layers, preset.num_layers),
                  .d_model = given(options.d_model, preset.d_model),
                  .num_heads = given(options.num_heads, preset.num_heads)};
  sizes.ffn_dim = given(options.ffn_dim, 4 * sizes.d_model);
  return sizes;
}

/// The width of a head.
inline int64_t head_width_of(const BertOptions& options) {
  const BertSizes sizes = sizes_of(options);
  if (options.head_dim > 0 || sizes.num_heads == 0) return options.head_dim;
  return sizes.d_model / sizes.num_heads;
}

/// The longest sequence, in tokens with special ones, that the model has positions for.
inline int64_t max_length_of(const BertOptions& options) {
  return options.positions == "learned" ? options.max_positions
                                        : std::numeric_limits<int64_t>::max();
}

/// Whether pooled rows go through a layer of their own, head.pooler.
inline bool has_pooler(const BertOptions& options) {
  return options.pooling == "cls_tanh" || options.pooling == "cls_relu";
}

}  // namespace stretto::models
