#pragma once

#include <string>
#include <vector>

#include "models/speech/conv_block_options.h"

namespace stretto::models {

/// `[model]` of Jasper (Li et al. 2019, arXiv:1904.03288): blocks of convolutions in time with
/// residual connections, dense in Jasper DR (models/speech/time_delay_encoder.h).
struct JasperOptions {
  static constexpr const char* kName = "jasper";

  std::string preset = "jasper_10x5_dr";
  std::vector<ConvBlockOptions> blocks;
  std::string activation = "relu";
  double dropout_scale = 1;
  double norm_momentum = 0.1;
  double norm_epsilon = 1e-3;
  std::vector<std::string> init;

  static auto fields() {
    return conv_block_fields<JasperOptions>(
        {"jasper_10x5_dr", "jasper_10x5", "jasper_10x3", "jasper_mini", "jasper_commands"});
  }
};

/// Jasper 10xR has ten blocks of R convolutions. jasper_mini is OpenSeq2Seq's for Jetson, separable
/// and without dropout; jasper_commands its network of speech commands with three strides of 2.
const std::vector<ConvPreset>& presets_of(const JasperOptions& options);

}  // namespace stretto::models
