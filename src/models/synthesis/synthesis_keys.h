#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "nn/init_options.h"

namespace stretto::models {

/// `[model.style]`: style tokens (Wang et al. 2018, arXiv:1803.09017). A reference encoder reads
/// frames of a sound of the wanted style, and what it makes of them attends to learned tokens:
///
///     reference = GRU behind six 3 x 3 convolutions of stride 2 over time and bands
///     style     = multi-head attention of the reference to tanh(tokens)       [B, dim]
///
/// The style stands beside every row of the text.
struct StyleTokenOptions {
  int64_t num_tokens = 0;
  int64_t num_heads = 8;
  int64_t dim = 512;
  int64_t reference_dim = 128;

  bool is_on() const { return num_tokens > 0; }

  static auto fields() {
    using namespace config;
    using O = StyleTokenOptions;
    return Fields{
        field(&O::num_tokens, "num_tokens",
              "style tokens that a reference sound is described by (Wang et al. 2018: 10; "
              "OpenSeq2Seq: 32); 0 = the model has no style",
              between(0, 4096))
            .also_called({"gst_n_style_tokens", "style_tokens", "num_style_tokens", "gst_tokens"}),
        field(&O::num_heads, "num_heads", "heads of the attention to the tokens; divides dim",
              between(1, 256), {.hidden_in_shapes = true})
            .also_called({"gst_num_heads", "style_heads"})
            .read_unless_zero("num_tokens"),
        field(&O::dim, "dim", "width of the style that stands beside the rows of the text",
              between(1, 65536))
            .also_called({"gst_embedding_dim", "style_dim", "emb_size"})
            .read_unless_zero("num_tokens"),
        field(&O::reference_dim, "reference_dim", "units of the GRU that reads the reference",
              between(1, 65536))
            .also_called({"gst_gru_units", "ref_enc_gru_size", "num_rnn_units"})
            .read_unless_zero("num_tokens"),
    };
  }
};

/// What every model that writes frames of sound has in its `[model]`.
struct SynthesisKeys {
  std::string spectrum = "mel";
  int64_t reduction = 1;
  int64_t speaker_dim = 64;
  std::vector<std::string> init;
  StyleTokenOptions style;

  static auto fields() {
    using namespace config;
    using O = SynthesisKeys;
    return Fields{
        field(&O::spectrum, "spectrum",
              "what the model writes: mel bands, the bins of the magnitude, or mel bands with the "
              "bins that a second network makes of them",
              one_of({"mel", "magnitude", "both"}))
            .also_called({"output_type", "spectrogram_type", "features_type"})
            .value_also_called("magnitude", {"mag", "linear", "magnitudes"})
            .value_also_called("both", {"mel_and_linear", "mel_mag"}),
        field(&O::reduction, "reduction",
              "frames that a step of the decoder writes; 2 aligns in half the updates, and halves "
              "the time of a step",
              between(1, 32), {.unit = "frames"})
            .also_called({"reduction_factor", "outputs_per_step", "n_frames_per_step", "r"}),
        field(&O::speaker_dim, "speaker_dim",
              "width of a speaker's vector beside the rows of the text; only data with several "
              "speakers have such vectors",
              between(1, 65536))
            .also_called({"speaker_embedding_dim", "speakers_embedding_dim", "spk_embed_dim"}),
        nn::init_field(&O::init),
        field(&O::style, "style", "style tokens, and the encoder of a reference sound")
            .also_called({"gst", "style_embedding", "global_style_tokens"}),
    };
  }
};

/// Keys that both kinds spell alike, for an options struct `O` that has the members.
template <class O>
auto prenet_fields() {
  using namespace config;
  return Fields{
      field(&O::prenet_layers, "prenet_layers", "layers that the last frame passes into a step",
            between(1, 16))
          .also_called({"prenet_num_layers"}),
      field(&O::prenet_dim, "prenet_dim", "units of these layers", between(1, 65536))
          .also_called({"prenet_units", "prenet_hidden_size"}),
      field(&O::prenet_dropout, "prenet_dropout",
            "on these layers, in training and whenever frames are written: without it, attention "
            "does not form",
            fraction())
          .also_called({"prenet_dropout_rate", "p_prenet_dropout"}),
  };
}

}  // namespace stretto::models
