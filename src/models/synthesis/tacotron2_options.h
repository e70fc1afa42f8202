#pragma once

#include <cstdint>

#include "models/batch_norm_keys.h"
#include "models/synthesis/synthesis_keys.h"

namespace stretto::models {

/// `[model]` of Tacotron 2 (Shen et al. 2017, arXiv:1712.05884; models/synthesis/tacotron2.h).
/// Defaults are the paper's.
struct Tacotron2Options : SynthesisKeys {
  using Inherited = SynthesisKeys;  // config counts its members too
  static constexpr const char* kName = "tacotron2";

  int64_t embedding_dim = 512;
  int64_t encoder_dim = 512;
  int64_t encoder_convolutions = 3;
  int64_t encoder_kernel = 5;
  int64_t prenet_layers = 2;
  int64_t prenet_dim = 256;
  double prenet_dropout = 0.5;
  int64_t decoder_dim = 1024;
  int64_t attention_dim = 128;
  int64_t location_filters = 32;
  int64_t location_kernel = 31;
  double zoneout = 0.1;
  double decoder_dropout = 0.0;
  int64_t postnet_layers = 5;
  int64_t postnet_dim = 512;
  int64_t postnet_kernel = 5;
  double conv_dropout = 0.5;
  double norm_momentum = 0.1;
  double norm_epsilon = 1e-5;

  static auto encoder_fields() {
    using namespace config;
    using O = Tacotron2Options;
    return Fields{
        field(&O::embedding_dim, "embedding_dim", "width of a character's vector",
              between(1, 65536))
            .also_called({"symbols_embedding_dim", "char_embedding_dim", "src_emb_size"}),
        field(&O::encoder_dim, "encoder_dim",
              "channels of the encoder's convolutions, and the width of its rows: half of it are "
              "the units of its LSTM in a direction",
              between(2, 65536))
            .also_called({"encoder_embedding_dim", "encoder_lstm_units", "eunits"}),
        field(&O::encoder_convolutions, "encoder_convolutions",
              "convolutions in front of the encoder's LSTM", between(0, 64))
            .also_called({"encoder_n_convolutions", "enc_conv_num_layers", "econv_layers"}),
        field(&O::encoder_kernel, "encoder_kernel", "taps of these convolutions", between(1, 255))
            .also_called({"encoder_kernel_size", "enc_conv_kernel_size"}),
    };
  }

  static auto decoder_fields() {
    using namespace config;
    using O = Tacotron2Options;
    return Fields{
        field(&O::decoder_dim, "decoder_dim", "units of each of the decoder's two LSTMs",
              between(1, 65536))
            .also_called({"decoder_rnn_dim", "attention_rnn_dim", "decoder_lstm_units", "dunits"}),
        field(&O::attention_dim, "attention_dim", "width of queries and keys", between(1, 65536))
            .also_called({"attention_hidden_dim", "attention_layer_size", "adim"}),
        field(&O::location_filters, "location_filters",
              "filters over the attention of the last step and the sum of all steps before",
              between(1, 4096))
            .also_called({"attention_location_n_filters", "attention_filters", "aconv_chans"}),
        field(&O::location_kernel, "location_kernel", "characters that such a filter sees",
              between(1, 1023))
            .also_called({"attention_location_kernel_size", "attention_kernel", "aconv_filts"}),
        field(
            &O::zoneout, "zoneout",
            "probability that a unit of an LSTM keeps its value of the step before (Krueger et al. "
            "2016)",
            fraction())
            .also_called({"zoneout_prob", "zoneout_rate", "tacotron_zoneout_rate"}),
        field(&O::decoder_dropout, "decoder_dropout",
              "on what the decoder's LSTMs give to the layers above; 0.1 in NVIDIA's model, which "
              "has no zoneout",
              fraction())
            .also_called({"p_decoder_dropout", "p_attention_dropout"}),
    };
  }

  static auto postnet_fields() {
    using namespace config;
    using O = Tacotron2Options;
    return Fields{
        field(&O::postnet_layers, "postnet_layers",
              "convolutions whose output is added to the frames; 0 = no post-net", between(0, 64))
            .also_called({"postnet_n_convolutions", "postnet_num_layers"}),
        field(&O::postnet_dim, "postnet_dim", "channels between these convolutions",
              between(1, 65536))
            .also_called({"postnet_embedding_dim", "postnet_channels"})
            .read_unless_zero("postnet_layers"),
        field(&O::postnet_kernel, "postnet_kernel", "taps of these convolutions", between(1, 255))
            .also_called({"postnet_kernel_size"})
            .read_unless_zero("postnet_layers"),
        field(&O::conv_dropout, "conv_dropout", "behind the convolutions of encoder and post-net",
              fraction())
            .also_called({"tacotron_dropout_rate", "cnn_dropout_prob", "postnet_keep_dropout_prob",
                          "enc_dropout"}),
    };
  }

  static auto fields() {
    using O = Tacotron2Options;
    return encoder_fields()
        .with(prenet_fields<O>())
        .with(decoder_fields())
        .with(postnet_fields())
        .with(batch_norm_fields<O>())
        .with(SynthesisKeys::fields());
  }
};

}  // namespace stretto::models
