#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/text.h"
#include "config/field.h"
#include "models/embedding_options.h"

namespace stretto::models {

/// Keys that give each layer a number (`channels`, `kernels`): entry i is layer i's, and the last
/// entry is that of all further layers. So `[3]` is 3 for all.
inline int64_t number_of_layer(const std::vector<double>& list, int64_t layer, int64_t fallback) {
  if (list.empty()) return fallback;
  const auto last = static_cast<int64_t>(list.size()) - 1;
  return static_cast<int64_t>(list[static_cast<size_t>(layer < last ? layer : last)]);
}

/// What is wrong with such a list, to be said behind the key's path: "has 4 entries for 2 layers";
/// empty = nothing.
/// @param max  largest entry allowed; the smallest is 1
inline std::string layer_list_error(const std::vector<double>& list, int64_t num_layers,
                                    int64_t max) {
  if (static_cast<int64_t>(list.size()) > num_layers) {
    return "has " + counted(static_cast<int64_t>(list.size()), "entry", "entries") + " for " +
           counted(num_layers, "layer") + "; the last entry goes on for further layers";
  }
  for (const double entry : list) {
    if (entry == std::floor(entry) && entry >= 1 && entry <= static_cast<double>(max)) continue;
    return "must hold whole numbers from 1 to " + std::to_string(max);
  }
  return "";
}

constexpr int64_t kMostChannels = 65536, kMostTaps = 1023;

/// Keys that both sides of ConvS2S have.
template <class O>
auto conv_fields() {
  using namespace config;
  return Fields{
      field(&O::num_layers, "num_layers", "convolutions, each with its gated linear unit",
            between(1, 1000))
          .also_called({"layers", "depth", "enc_layers", "dec_layers", "n_layers", "cnn_layers"})
          .also_called({"conv_nchannels_kwidth", "encoder_layers", "decoder_layers"},
                       "its pairs of channels and taps are the lists `channels` and `kernels`"),
      field(&O::channels, "channels",
            "width of each layer, the last one going on for further layers; empty = model.d_model",
            any())
          .also_called({"nchannels", "cnn_size", "num_channels", "conv_dim", "nhid"}),
      field(&O::kernels, "kernels",
            "taps of each layer's convolution, the last number going on for further layers", any())
          .also_called({"kernel_size", "kernel", "kwidth", "cnn_kernel_width", "kernel_sizes",
                        "enc_kernel_width", "dec_kernel_width"}),
      field(&O::weight_norm, "weight_norm", "each row of a weight as a direction and a length",
            any())
          .also_called({"normalization_type", "weightnorm", "use_weight_norm"}),
      field(&O::dropout, "dropout", "on embeddings, each convolution's input and the last rows",
            fraction())
          .also_called({"dropout_rate", "cnn_dropout"})
          .also_called({"embedding_dropout_keep_prob", "encoder_hidden_dropout_keep_prob",
                        "decoder_hidden_dropout_keep_prob", "out_dropout_keep_prob",
                        "encoder_emb_dropout_keep_prob", "decoder_emb_dropout_keep_prob"},
                       "= 1 - what is kept; one number for all places"),
      field(&O::positions, "positions", "how a token knows its place",
            one_of({"learned", "sinusoidal", "none"}), {.hidden_in_shapes = true})
          .also_called({"position_encoding", "positional_embeddings", "position_embeddings"})
          .value_also_called("none", {"no_token_positional_embeddings", "false"}),
      field(&O::max_positions, "max_positions", "longest sequence of learned positions",
            between(1, 1000000), {.unit = "tokens"})
          .also_called({"max_source_positions", "max_target_positions", "max_input_length",
                        "max_position_embeddings"})
          .read_with("positions", {"learned"}),
  };
}

/// `[model.encoder]`: the encoder of ConvS2S (Gehring et al. 2017, arXiv:1705.03122). Defaults are
/// those of fairseq's `fconv`: 20 layers of (512, 3), dropout 0.1, learned positions; its base
/// recipe has 1024 positions. The WMT'14 recipe (and OpenSeq2Seq's) is
///     num_layers = 15
///     channels = [512, 512, 512, 512, 512, 512, 512, 512, 512, 1024, 1024, 1024, 1024, 2048]
///     kernels  = [3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 1]
struct ConvEncoderOptions {
  static constexpr const char* kName = "conv";
  int64_t num_layers = 20;
  std::vector<double> channels;
  std::vector<double> kernels = {3};
  bool weight_norm = true;
  double dropout = 0.1;
  std::string positions = "learned";
  int64_t max_positions = 1024;
  bool scale_gradient = true;

  static auto fields() {
    using namespace config;
    using O = ConvEncoderOptions;
    return conv_fields<O>().with(
        Fields{field(&O::scale_gradient, "scale_gradient",
                     "divide its gradient by twice the number of the decoder's layers that "
                     "attend, since each of them adds one; for a decoder of `conv` layers",
                     any())
                   .also_called({"att_layer_num", "num_attention_layers"}, "the number is counted")
                   .read_with_key("model.decoder.name", {"conv"})});
  }

  EmbeddingKind embedding_kind() const { return convolutional_embedding(); }
};

/// `[model.decoder]`: the decoder of ConvS2S, with attention in every layer; defaults as above.
struct ConvDecoderOptions {
  static constexpr const char* kName = "conv";
  int64_t num_layers = 20;
  std::vector<double> channels;
  std::vector<double> kernels = {3};
  bool weight_norm = true;
  double dropout = 0.1;
  std::string positions = "learned";
  int64_t max_positions = 1024;
  int64_t out_dim = 0;

  static auto fields() {
    using namespace config;
    using O = ConvDecoderOptions;
    return conv_fields<O>().with(
        Fields{field(&O::out_dim, "out_dim",
                     "width of the rows in front of the output projection; 0 = model.d_model, "
                     "as a tied projection needs",
                     between(0, 65536))
                   .also_called({"out_emb_size", "out_embed_dim", "decoder_out_embed_dim"})});
  }

  /// Width of the decoder's rows.
  int64_t output_width(int64_t d_model) const { return out_dim > 0 ? out_dim : d_model; }
  EmbeddingKind embedding_kind() const { return convolutional_embedding(); }
};

}  // namespace stretto::models
