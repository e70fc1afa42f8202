#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "models/batch_norm_keys.h"
#include "nn/init_options.h"

namespace stretto::models {

/// An entry of `[[model.blocks]]`: convolutions in time that are alike, one behind the other, each
/// with a batch norm and an activation (models/speech/time_delay_encoder.h).
struct ConvBlockOptions {
  int64_t repeat = 1;
  int64_t channels = 256;
  int64_t kernel = 11;
  int64_t stride = 1;
  int64_t dilation = 1;
  double dropout = 0;
  std::string residual = "none";
  bool separable = false;
  int64_t groups = 1;

  static auto fields() {
    using namespace config;
    using O = ConvBlockOptions;
    const Meta hidden{.hidden_in_shapes = true};
    return Fields{
        field(&O::repeat, "repeat", "convolutions of the block", between(1, 100)),
        field(&O::channels, "channels", "that each convolution gives", between(1, 65536))
            .also_called({"num_channels", "filters", "out_channels"}),
        field(&O::kernel, "kernel", "frames that a filter covers", between(1, 1023),
              {.unit = "frames"})
            .also_called({"kernel_size", "kernel_width"}),
        field(&O::stride, "stride",
              "of the block's first convolution: one row comes out for so many that go in",
              between(1, 64), {.unit = "frames", .hidden_in_shapes = true})
            .also_called({"strides"}),
        field(&O::dilation, "dilation", "distance of a filter's taps", between(1, 64),
              {.unit = "frames", .hidden_in_shapes = true}),
        field(&O::dropout, "dropout", "behind each activation of the block", fraction(), hidden)
            .also_called({"dropout_keep_prob"}, "1 - the probability of keeping"),
        field(&O::residual, "residual",
              "what is added in front of the block's last activation, each through a convolution "
              "with one tap and a batch norm. block: the block's input. dense: the inputs of this "
              "block and of all dense blocks below (Jasper DR)",
              one_of({"none", "block", "dense"}))
            .value_also_called("block", {"true", "residual"})
            .value_also_called("dense", {"residual_dense", "dr"}),
        field(&O::separable, "separable",
              "a convolution is one filter for each channel, and a linear map of the channels "
              "(QuartzNet)",
              any())
            .also_called({"sep_conv", "depthwise_separable"}),
        field(&O::groups, "groups",
              "a convolution, or the linear map of a separable one, sees the channels of one of so "
              "many groups, and outputs of the groups alternate (section 4.3 of QuartzNet)",
              between(1, 1024)),
    };
  }
};

/// A preset of blocks by its name.
struct ConvPreset {
  std::string name;
  std::vector<ConvBlockOptions> blocks;
};

/// Keys that all models of such blocks have, for an options struct `O` with the members preset,
/// blocks, activation, dropout_scale, norm_momentum, norm_epsilon and init.
/// @param presets  their names, without "none"
template <class O>
auto conv_block_fields(std::vector<std::string> presets) {
  using namespace config;
  const Meta hidden{.hidden_in_shapes = true};
  presets.insert(presets.begin(), "none");
  return Fields{
      field(&O::preset, "preset", "a published network by its name; with none model.blocks give it",
            one_of(std::move(presets)))
          .also_called({"arch", "architecture", "variant"}),
      field(&O::blocks, "blocks",
            "the blocks of the network, bottom first; they take the place of the preset's")
          .also_called({"convnet_layers", "layers", "conv_layers"}),
      field(&O::activation, "activation",
            "behind every norm; clipped_relu is min(max(x, 0), 20), as OpenSeq2Seq's Wave2Letter+",
            one_of({"relu", "clipped_relu"}), hidden)
          .also_called({"activation_fn"})
          .value_also_called("clipped_relu", {"hardtanh", "relu20"}),
      field(&O::dropout_scale, "dropout_scale",
            "the dropout of every block is multiplied by it; 0 = none",
            {.min = 0, .max = 1, .choices = {}}, hidden),
  }
      .with(batch_norm_fields<O>())
      .with(Fields{nn::init_field(&O::init)});
}

}  // namespace stretto::models
