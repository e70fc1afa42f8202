#pragma once

#include <string>
#include <vector>

#include "models/speech/conv_block_options.h"

namespace stretto::models {

/// `[model]` of QuartzNet (Kriman et al. 2019, arXiv:1910.10261): Jasper's blocks with separable
/// convolutions (models/speech/time_delay_encoder.h).
struct QuartzNetOptions {
  static constexpr const char* kName = "quartznet";

  std::string preset = "quartznet_15x5";
  std::vector<ConvBlockOptions> blocks;
  std::string activation = "relu";
  double dropout_scale = 1;
  double norm_momentum = 0.1;
  double norm_epsilon = 1e-3;
  std::vector<std::string> init;

  static auto fields() {
    return conv_block_fields<QuartzNetOptions>(
        {"quartznet_15x5", "quartznet_10x5", "quartznet_5x5"});
  }
};

/// QuartzNet Bx5 (table 1 of the paper): each of five kernels in B / 5 blocks of five convolutions.
const std::vector<ConvPreset>& presets_of(const QuartzNetOptions& options);

}  // namespace stretto::models
