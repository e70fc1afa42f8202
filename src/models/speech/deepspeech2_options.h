#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/field.h"
#include "models/batch_norm_keys.h"
#include "nn/init_options.h"

namespace stretto::models {

/// An entry of `[[model.convolutions]]`: a convolution over time and frequency, with a batch norm
/// and an activation.
struct PlaneConvOptions {
  int64_t channels = 32;
  int64_t time_kernel = 11;
  int64_t frequency_kernel = 41;
  int64_t time_stride = 1;
  int64_t frequency_stride = 2;

  static auto fields() {
    using namespace config;
    using O = PlaneConvOptions;
    return Fields{
        field(&O::channels, "channels", "that the convolution gives", between(1, 4096))
            .also_called({"num_channels", "filters"}),
        field(&O::time_kernel, "time_kernel", "frames that a filter covers", between(1, 255),
              {.unit = "frames"})
            .also_called({"kernel_size"}, "time and frequency are keys of their own"),
        field(&O::frequency_kernel, "frequency_kernel", "features that a filter covers",
              between(1, 1023)),
        field(&O::time_stride, "time_stride", "one row comes out for so many that go in",
              between(1, 16), {.unit = "frames", .hidden_in_shapes = true})
            .also_called({"stride"}, "time and frequency are keys of their own"),
        field(&O::frequency_stride, "frequency_stride",
              "one feature comes out for so many that go in", between(1, 64)),
    };
  }
};

/// Sizes of a published network.
struct DeepSpeech2Preset {
  std::string_view name;
  int64_t num_convolutions = 2;  ///< of 32, 64, 96 channels; with two of 32 and 32
  int64_t num_layers = 2;
  int64_t hidden_dim = 512;
  bool bidirectional = true;
  int64_t row_convolution = 1;
  int64_t output_dim = 1024;
};

inline constexpr std::array<DeepSpeech2Preset, 4> kDeepSpeech2Presets{{
    {"deepspeech2_large", 2, 5, 800, true, 1, 1600},
    {"deepspeech2_medium", 3, 3, 1024, false, 8, 2048},
    {"deepspeech2_small", 2, 2, 512, true, 1, 1024},
    {"deepspeech2_toy", 3, 1, 256, true, 1, 256},
}};

/// `[model]` of DeepSpeech 2 (Amodei et al. 2015, arXiv:1512.02595) in OpenSeq2Seq's form
/// (models/speech/deepspeech2.h): convolutions over time and frequency, recurrent layers, a row
/// convolution and a linear layer.
struct DeepSpeech2Options {
  static constexpr const char* kName = "deepspeech2";

  std::string preset = "deepspeech2_large";
  std::vector<PlaneConvOptions> convolutions;
  std::string cell = "gru";
  int64_t num_layers = 0;
  int64_t hidden_dim = 0;
  std::string direction = "auto";
  int64_t row_convolution = 0;
  int64_t output_dim = 0;
  std::string activation = "relu";
  double dropout = 0.5;
  double norm_momentum = 0.01;
  double norm_epsilon = 1e-3;
  std::vector<std::string> init;

  static auto recurrent_part_fields() {
    using namespace config;
    using O = DeepSpeech2Options;
    return Fields{
        field(&O::cell, "cell", "LSTM, or GRU in cuDNN's form", one_of({"gru", "lstm"}))
            .also_called({"rnn_type", "cell_type", "rnn_cell"})
            .value_also_called("gru", {"cudnn_gru"})
            .value_also_called("lstm", {"cudnn_lstm"}),
        field(&O::num_layers, "num_layers", "recurrent layers; 0 = as the preset", between(0, 100))
            .also_called({"num_rnn_layers", "rnn_layers"}),
        field(&O::hidden_dim, "hidden_dim",
              "units of a recurrent layer, in each direction; 0 = as the preset", between(0, 65536))
            .also_called({"rnn_cell_dim", "hidden_size", "num_units"}),
        field(&O::direction, "direction",
              "both: each recurrent layer reads forward and backward. forward: it sees no future, "
              "and `infer --stream` is possible",
              one_of({"auto", "both", "forward"}))
            .also_called({"rnn_unidirectional"}, "= \"forward\"")
            .also_called({"bidirectional"}, "= \"both\"")
            .value_also_called("both", {"bidirectional"})
            .value_also_called("forward", {"unidirectional"}),
        field(&O::row_convolution, "row_convolution",
              "frames that the convolution behind the recurrent layers covers, one filter a unit: "
              "a row itself and those after it (section 3.7 of the paper); 1 = none, 0 = as the "
              "preset",
              between(0, 255), {.unit = "frames"})
            .also_called({"row_conv_width", "row_conv", "lookahead", "context"}),
    };
  }

  static auto fields() {
    using namespace config;
    using O = DeepSpeech2Options;
    const Meta hidden{.hidden_in_shapes = true};
    std::vector<std::string> presets{"none"};
    for (const DeepSpeech2Preset& preset : kDeepSpeech2Presets) presets.emplace_back(preset.name);
    return Fields{
        field(&O::preset, "preset",
              "a published network by its name; with none the keys below give it",
              one_of(std::move(presets)))
            .also_called({"arch", "architecture", "variant"}),
        field(&O::convolutions, "convolutions",
              "over time and frequency, bottom first; they take the place of the preset's")
            .also_called({"conv_layers"})}
        .with(recurrent_part_fields())
        .with(Fields{
            field(&O::output_dim, "output_dim",
                  "width of the linear layer behind them; 0 = as the preset", between(0, 65536))
                .also_called({"n_hidden", "fc_dim"}),
            field(&O::activation, "activation",
                  "behind norms and the linear layer; clipped_relu is min(max(x, 0), 20), the "
                  "paper's",
                  one_of({"relu", "clipped_relu"}), hidden)
                .also_called({"activation_fn"})
                .value_also_called("clipped_relu", {"hardtanh", "relu20"}),
            field(&O::dropout, "dropout",
                  "between recurrent layers, and behind the linear layer; the toy is published "
                  "with 0",
                  fraction(), hidden)
                .also_called({"dropout_keep_prob"}, "1 - the probability of keeping"),
        })
        .with(batch_norm_fields<O>())
        .with(Fields{nn::init_field(&O::init)});
  }
};

/// What the keys come to.
struct DeepSpeech2Shape {
  std::vector<PlaneConvOptions> convolutions;
  int64_t num_layers = 0;
  int64_t hidden_dim = 0;
  bool bidirectional = true;
  int64_t row_convolution = 1;  ///< 1 = none
  int64_t output_dim = 0;

  /// Width of the rows that a recurrent layer gives.
  int64_t recurrent_width() const { return hidden_dim * (bidirectional ? 2 : 1); }
};

/// Sizes that neither a preset nor a key gives are 0.
DeepSpeech2Shape shape_of(const DeepSpeech2Options& options);

}  // namespace stretto::models
