#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "models/convolution_options.h"

/// Convolutions with few weights in place of self-attention (Wu et al. 2019, arXiv:1901.10430).
/// `light_conv` has one softmax-normalised filter a head; `dynamic_conv` predicts them from each
/// row. All else is the Transformer's.
///
/// Defaults are those of fairseq's base `lightconv` architecture: 7 layers of an encoder and 6 of a
/// decoder with taps 3, 7, 15, 31, 31, …, 8 heads, 2048 wide feed-forward parts, gated input
/// projections, norms after the sum, dropout 0.1, also on a convolution's input. Dropout of filters
/// and attention is that of its big and IWSLT ones, 0.1.
namespace stretto::models {

/// Keys that both sides have.
template <class O>
auto light_fields() {
  using namespace config;
  const Meta hidden{.hidden_in_shapes = true};
  return Fields{
      field(&O::num_layers, "num_layers", "layers of the stack", between(1, 1000))
          .also_called({"layers", "depth", "encoder_layers", "decoder_layers", "n_layers"}),
      field(&O::num_heads, "num_heads",
            "filters of a convolution, each shared by model.d_model / num_heads channels; heads "
            "of attention too",
            between(1, 1024), hidden)
          .also_called({"heads", "encoder_attention_heads", "decoder_attention_heads",
                        "attention_heads", "n_heads"}),
      field(&O::kernels, "kernels",
            "taps of each layer's filters, the last number going on for further layers", any())
          .also_called({"encoder_kernel_size_list", "decoder_kernel_size_list", "kernel_sizes",
                        "kernel_size", "kernel"}),
      field(&O::glu, "glu", "the projection in front of the filters is twice as wide and gated",
            any())
          .also_called({"encoder_glu", "decoder_glu"}),
      field(&O::ffn_dim, "ffn_dim", "inner width of the feed-forward part", between(1, 1000000))
          .also_called({"ffn_embed_dim", "encoder_ffn_embed_dim", "decoder_ffn_embed_dim",
                        "ffn_size", "d_ff", "inner_dim"}),
      field(&O::norm, "norm",
            "where each part is normalised: after the residual sum, or before the part",
            one_of({"post", "pre"}), hidden)
          .also_called({"encoder_normalize_before", "decoder_normalize_before", "normalize_before",
                        "norm_first", "pre_norm"},
                       "= \"pre\""),
      field(&O::activation, "activation",
            "of the feed-forward part: gelu_tanh is GELU's approximation by tanh, silu is also "
            "called swish; swiglu has a third matrix",
            one_of({"relu", "gelu", "swiglu", "gelu_tanh", "silu"}), hidden)
          .also_called({"activation_fn", "activation_function"})
          .value_also_called("gelu_tanh", {"gelu_new", "gelu_fast", "gelu_pytorch_tanh"})
          .value_also_called("silu", {"swish"})
          .value_also_called("swiglu", {"silu_gated", "gated_silu", "swish_gated"}),
      field(&O::positions, "positions", "how a token knows its place",
            one_of({"sinusoidal", "learned", "none"}), hidden)
          .also_called({"position_encoding", "positional_encoding"})
          .also_called({"encoder_learned_pos", "decoder_learned_pos"}, "= \"learned\"")
          .also_called({"no_token_positional_embeddings"}, "= \"none\""),
      field(&O::max_positions, "max_positions", "longest sequence of learned positions",
            between(1, 1000000), {.unit = "tokens"})
          .also_called({"max_source_positions", "max_target_positions"})
          .read_with("positions", {"learned"}),
      field(&O::dropout, "dropout", "on embeddings and each part's output", fraction())
          .also_called({"dropout_rate", "hidden_dropout", "residual_dropout"}),
      field(&O::input_dropout, "input_dropout", "on the input of each convolution's projections",
            fraction()),
      field(&O::weight_dropout, "weight_dropout",
            "on normalised filters, for each row anew (DropConnect)", fraction())
          .also_called({"weight_drop", "drop_connect", "dropconnect"}),
      field(&O::activation_dropout, "activation_dropout", "after the feed-forward activation",
            fraction())
          .also_called({"relu_dropout", "ffn_dropout"}),
  };
}

/// `[model.encoder]`. @tparam kPredicted  whether rows predict their filters
template <bool kPredicted>
struct SharedFilterEncoderOptions {
  static constexpr const char* kName = kPredicted ? "dynamic_conv" : "light_conv";
  static constexpr bool predicts_filters = kPredicted;
  int64_t num_layers = 7;
  int64_t num_heads = 8;
  std::vector<double> kernels = {3, 7, 15, 31};
  bool glu = true;
  int64_t ffn_dim = 2048;
  std::string norm = "post";
  std::string activation = "relu";
  std::string positions = "sinusoidal";
  int64_t max_positions = 1024;
  double dropout = 0.1;
  double input_dropout = 0.1;
  double weight_dropout = 0.1;
  double activation_dropout = 0.0;

  static auto fields() { return light_fields<SharedFilterEncoderOptions>(); }
};
using LightEncoderOptions = SharedFilterEncoderOptions<false>;
using DynamicEncoderOptions = SharedFilterEncoderOptions<true>;

/// `[model.decoder]`: causal filters, attention over the encoder's rows, feed-forward part.
template <bool kPredicted>
struct SharedFilterDecoderOptions {
  static constexpr const char* kName = kPredicted ? "dynamic_conv" : "light_conv";
  static constexpr bool predicts_filters = kPredicted;
  int64_t num_layers = 6;
  int64_t num_heads = 8;
  std::vector<double> kernels = {3, 7, 15, 31};
  bool glu = true;
  int64_t ffn_dim = 2048;
  std::string norm = "post";
  std::string activation = "relu";
  std::string positions = "sinusoidal";
  int64_t max_positions = 1024;
  double dropout = 0.1;
  double input_dropout = 0.1;
  double weight_dropout = 0.1;
  double activation_dropout = 0.0;
  double attention_dropout = 0.1;

  static auto fields() {
    using O = SharedFilterDecoderOptions;
    return light_fields<O>().with(config::Fields{
        config::field(&O::attention_dropout, "attention_dropout",
                      "on attention weights over the encoder's rows", config::fraction())
            .also_called({"attn_dropout"})});
  }
};
using LightDecoderOptions = SharedFilterDecoderOptions<false>;
using DynamicDecoderOptions = SharedFilterDecoderOptions<true>;

}  // namespace stretto::models
