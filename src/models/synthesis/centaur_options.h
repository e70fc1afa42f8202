#pragma once

#include <cstdint>

#include "models/synthesis/synthesis_keys.h"

namespace stretto::models {

/// `[model]` of CENTAUR, OpenSeq2Seq's convolutional synthesiser (decoders/centaur_decoder.py;
/// models/synthesis/centaur.h). Set `reduction = 2` as OpenSeq2Seq does.
struct CentaurOptions : SynthesisKeys {
  using Inherited = SynthesisKeys;  // config counts its members too
  static constexpr const char* kName = "centaur";

  int64_t d_model = 256;
  int64_t encoder_convolutions = 4;
  int64_t encoder_kernel = 3;
  int64_t prenet_layers = 2;
  int64_t prenet_dim = 256;
  double prenet_dropout = 0.5;
  int64_t decoder_convolutions = 4;
  int64_t decoder_kernel = 5;
  int64_t num_layers = 4;
  double dropout = 0.1;
  double attention_dropout = 0.1;
  int64_t attention_window = 4;

  static auto fields() {
    using namespace config;
    using O = CentaurOptions;
    return Fields{
        field(&O::d_model, "d_model", "width of all rows", between(2, 65536))
            .also_called({"hidden_size", "embedding_size"}),
        field(&O::encoder_convolutions, "encoder_convolutions", "convolutions over the characters",
              between(1, 64)),
        field(&O::encoder_kernel, "encoder_kernel", "taps of these convolutions", between(1, 255)),
    }
        .with(prenet_fields<O>())
        .with(Fields{
            field(&O::decoder_convolutions, "decoder_convolutions",
                  "causal convolutions over the steps, in front of the layers that attend",
                  between(0, 64))
                .also_called({"conv_layers"}),
            field(&O::decoder_kernel, "decoder_kernel",
                  "taps of every causal convolution of the decoder", between(1, 255))
                .also_called({"decoder_kernel_size"}),
            field(&O::num_layers, "num_layers",
                  "layers of a causal convolution, attention to the text and a feed-forward part",
                  between(1, 64))
                .also_called({"attention_layers"}),
            field(&O::dropout, "dropout", "behind convolutions and on each part's output",
                  fraction())
                .also_called({"cnn_dropout_prob", "layer_postprocess_dropout"}),
            field(&O::attention_dropout, "attention_dropout", "on attention weights", fraction()),
            field(&O::attention_window, "attention_window",
                  "characters around the place of the step before that attention may see while "
                  "frames are written; 0 = all. Training never limits it",
                  between(0, 4096), {.change = Change::kScoring})
                .also_called({"window_size", "attention_win_size"}),
        })
        .with(SynthesisKeys::fields());
  }
};

}  // namespace stretto::models
