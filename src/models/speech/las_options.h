#pragma once

#include <string>
#include <vector>

#include "models/speech/attention_decoder_options.h"
#include "models/speech/conv_block_options.h"

namespace stretto::models {

/// `[model]` of Listen, Attend and Spell (Chan et al. 2015, arXiv:1508.01211) as OpenSeq2Seq has
/// it: convolutions in time (models/speech/time_delay_encoder.h), CTC and an attention decoder
/// (models/speech/attention_decoder.h), which train together (Kim et al. 2016, arXiv:1609.06773).
struct LasOptions {
  static constexpr const char* kName = "las";

  std::string preset = "las_large";
  std::vector<ConvBlockOptions> blocks;
  std::string activation = "clipped_relu";
  double dropout_scale = 1;
  double norm_momentum = 0.1;
  double norm_epsilon = 1e-3;
  std::vector<std::string> init;
  AttentionDecoderOptions decoder = {.weight = 0.75};

  static auto fields() {
    return conv_block_fields<LasOptions>({"las_large", "las_small"})
        .with(config::Fields{
            config::field(&LasOptions::decoder, "decoder", "the attention decoder beside CTC")
                .also_called({"attention_decoder"})});
  }
};

/// OpenSeq2Seq's joint CTC and attention (jca_large), and the same with one convolution a block and
/// a third of its widths.
const std::vector<ConvPreset>& presets_of(const LasOptions& options);

}  // namespace stretto::models
