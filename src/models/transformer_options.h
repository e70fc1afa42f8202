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
        field(&O::num_layers, "num_layers", "layers of the stack", between(1, 1000))
            .also_called({"layers", "depth", "num_hidden_layers", "enc_depth", "dec_depth",
                          "n_layers", "nlayers"}),
        field(&O::num_heads, "num_heads", "attention heads; divides d_model", between(1, 1024))
            .also_called({"heads", "attention_heads", "nhead", "n_heads", "num_attention_heads",
                          "transformer_heads"}),
        field(&O::ffn_dim, "ffn_dim", "inner width of the feed-forward part", between(1, 1000000))
            .also_called({"ffn_embed_dim", "ffn_size", "dim_feedforward", "transformer_ff",
                          "transformer_dim_ffn", "d_ff", "ffn_hidden", "intermediate_size",
                          "inner_dim"}),
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
        field(&O::name, "name", "which model", one_of({"transformer"}))
            .also_called(
                {"arch", "architecture", "type", "model_type", "encoder_type", "decoder_type"})
            .value_also_called("transformer",
                               {"transformer_base", "transformer_big", "transformer_wmt_en_de",
                                "transformer_vaswani_wmt_en_de_big", "transformer_iwslt_de_en"},
                               "its sizes are keys of [model]")
            .value_also_called("transformer", {"marian", "encoder_decoder", "seq2seq"}),
        field(&O::d_model, "d_model", "width of the residual stream", between(2, 65536))
            .also_called({"dim", "dim_model", "model_dim", "embed_dim", "encoder_embed_dim",
                          "decoder_embed_dim", "emb_size", "embedding_dim", "dim_emb",
                          "hidden_size", "rnn_size", "word_vec_size", "word_vec_dim",
                          "embedding_size", "width"}),
        field(&O::encoder, "encoder", "the encoder's stack"),
        field(&O::decoder, "decoder", "the decoder's stack"),
        field(&O::norm, "norm",
              "where each part is normalised: after the residual sum (Vaswani 2017), before the "
              "part, or its output before the sum (Swin v2)",
              one_of({"post", "pre", "res_post"}))
            .also_called({"encoder_normalize_before", "decoder_normalize_before",
                          "normalize_before", "norm_first", "pre_norm"},
                         "= \"pre\"")
            .also_called({"transformer_preprocess"}, "= \"pre\" for Marian's \"n\"")
            .also_called({"transformer_postprocess"}, "= \"post\" for Marian's \"dan\"")
            .also_called({"norm_position"})
            .value_also_called("post", {"postnorm", "post_norm", "post_ln", "after"})
            .value_also_called("pre", {"prenorm", "pre_norm", "pre_ln", "before"}),
        field(&O::norm_layer, "norm_layer",
              "over the width of each token, or each channel over all tokens of a micro-batch (see "
              "dist.batch_norm)",
              one_of({"layer_norm", "batch_norm"}))
            .also_called({"norm_type", "layer_norm_type", "normalization"})
            .value_also_called("layer_norm", {"ln", "standard", "layer"})
            .value_also_called("batch_norm", {"bn", "batch"}),
        field(&O::zero_gamma, "zero_gamma",
              "norms start with a gain of 0, so that each part adds nothing at first; for norm = "
              "\"res_post\"",
              any())
            .also_called({"zero_init_residual", "zero_init_gamma", "zero_gain"}),
        field(&O::activation, "activation", "of the feed-forward part; swiglu has a third matrix",
              one_of({"relu", "gelu", "swiglu"}))
            .also_called({"activation_fn", "activation_function", "pos_ffn_activation_fn",
                          "hidden_act", "transformer_ffn_activation"})
            .value_also_called("gelu", {"gelu_new", "gelu_fast"})
            .value_also_called("swiglu", {"silu_gated", "gated_silu", "swish_gated"})
            .value_also_called("relu", {"rectifier"}),
        field(&O::positions, "positions", "how a token knows its place",
              one_of({"sinusoidal", "learned", "rotary"}))
            .also_called({"position_encoding", "positional_encoding", "position_embeddings",
                          "position_embedding_type"})
            .also_called(
                {"encoder_learned_pos", "decoder_learned_pos", "transformer_train_positions"},
                "= \"learned\"")
            .also_called({"rope"}, "= \"rotary\"")
            .value_also_called("sinusoidal", {"sin", "sinusoid", "fixed"})
            .value_also_called("learned", {"absolute", "embedding", "trained"})
            .value_also_called("rotary", {"rope", "rotary_embedding"}),
        field(&O::max_positions, "max_positions", "longest sequence of learned positions",
              between(1, 1000000), {.unit = "tokens"})
            .also_called({"max_position_embeddings", "n_positions"}),
        field(&O::tie_embeddings, "tie_embeddings",
              "which of source embedding, target embedding and output projection share one matrix",
              one_of({"all", "decoder", "none"}))
            .also_called({"share_all_embeddings", "share_embeddings", "tied_embeddings",
                          "tied_embeddings_all", "tie_word_embeddings", "tie_weights"})
            .also_called({"share_decoder_input_output_embed", "share_decoder_embeddings"},
                         "= \"decoder\"")
            .value_also_called("all", {"true", "yes", "shared", "share_all"})
            .value_also_called("none", {"false", "no"})
            .value_also_called("decoder", {"target", "tgt"}),
        field(&O::dropout, "dropout", "on embeddings and each part's output", fraction())
            .also_called({"dropout_rate", "hidden_dropout", "resid_dropout", "transformer_dropout",
                          "residual_dropout", "hidden_dropout_prob"}),
        field(&O::attention_dropout, "attention_dropout", "on attention weights", fraction())
            .also_called(
                {"attn_dropout", "transformer_dropout_attention", "attention_probs_dropout_prob"}),
        field(&O::activation_dropout, "activation_dropout", "after the feed-forward activation",
              fraction())
            .also_called({"relu_dropout", "ffn_dropout", "transformer_dropout_ffn"}),
    };
  }
};

/// Whether each part of a layer ends in a norm before it is added to the residual stream: with a
/// gain of 0 the part then adds nothing.
inline bool parts_end_in_norm(const TransformerOptions& options) {
  return options.norm == "res_post";
}

}  // namespace stretto::models
