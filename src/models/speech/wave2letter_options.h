#pragma once

#include <string>
#include <vector>

#include "models/speech/conv_block_options.h"

namespace stretto::models {

/// `[model]` of Wave2Letter+: a stack of convolutions in time (Collobert et al. 2016,
/// arXiv:1609.03193; OpenSeq2Seq's form with batch norms; models/speech/time_delay_encoder.h).
struct Wave2LetterOptions {
  static constexpr const char* kName = "wave2letter";

  std::string preset = "wave2letter_plus";
  std::vector<ConvBlockOptions> blocks;
  std::string activation = "clipped_relu";
  double dropout_scale = 1;
  double norm_momentum = 0.1;
  double norm_epsilon = 1e-3;
  std::vector<std::string> init;

  static auto fields() {
    return conv_block_fields<Wave2LetterOptions>({"wave2letter_plus", "wave2letter_small"});
  }
};

/// OpenSeq2Seq's Wave2Letter+, and the same with one convolution a block and a third of its widths,
/// for some hours of speech or less.
const std::vector<ConvPreset>& presets_of(const Wave2LetterOptions& options);

}  // namespace stretto::models
