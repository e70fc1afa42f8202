#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "models/speech/speech_model_options.h"

namespace stretto::models {
namespace {

/// Rows behind a convolution with this stride, whose windows are centred.
int64_t rows_behind(int64_t rows, int64_t stride) {
  return (rows + stride - 1) / stride;
}

/// Rows that a centred window of so many taps sees behind its middle.
int64_t rows_after(int64_t kernel, int64_t dilation = 1) {
  const int64_t reach = (kernel - 1) * dilation;
  return reach - reach / 2;
}

template <class Kind>
std::vector<ConvBlockOptions> own_or_preset(const Kind& options) {
  if (!options.blocks.empty()) return options.blocks;
  for (const ConvPreset& preset : presets_of(options)) {
    if (preset.name == options.preset) return preset.blocks;
  }
  return {};
}

const DeepSpeech2Preset* deepspeech2_preset(const DeepSpeech2Options& options) {
  const auto found =
      std::find_if(kDeepSpeech2Presets.begin(), kDeepSpeech2Presets.end(),
                   [&](const DeepSpeech2Preset& preset) { return preset.name == options.preset; });
  return found == kDeepSpeech2Presets.end() ? nullptr : &*found;
}

std::vector<PlaneConvOptions> preset_convolutions(const DeepSpeech2Preset& preset) {
  std::vector<PlaneConvOptions> convolutions(static_cast<size_t>(preset.num_convolutions));
  for (size_t i = 0; i < convolutions.size(); ++i) {
    if (preset.num_convolutions > 2) convolutions[i].channels = 32 * static_cast<int64_t>(i + 1);
    if (i > 0) convolutions[i].frequency_kernel = 21;
  }
  convolutions.front().time_stride = 2;
  return convolutions;
}

/// The strides in time of a model's layers, bottom first.
std::vector<int64_t> strides_of(const DeepSpeech2Options& options) {
  const DeepSpeech2Shape shape = shape_of(options);
  std::vector<int64_t> strides;
  for (const PlaneConvOptions& conv : shape.convolutions) strides.push_back(conv.time_stride);
  return strides;
}
std::vector<int64_t> strides_of(const ConformerOptions& options) {
  return {options.subsampling_factor};
}
template <class Kind>
std::vector<int64_t> strides_of(const Kind& options) {
  const std::vector<ConvBlockOptions> blocks = blocks_of(options);
  std::vector<int64_t> strides;
  for (const ConvBlockOptions& block : blocks) strides.push_back(block.stride);
  return strides;
}

/// One row, however long the utterance is: reads_as_a_whole().
std::vector<int64_t> strides_of(const SquareResNetOptions& /*options*/) {
  return {};
}

/// How many frames a row sees behind its own.
int64_t look_ahead(const DeepSpeech2Options& options) {
  const DeepSpeech2Shape shape = shape_of(options);
  int64_t frames = 0, rate = 1;
  for (const PlaneConvOptions& conv : shape.convolutions) {
    frames += rate * rows_after(conv.time_kernel);
    rate *= conv.time_stride;
  }
  return frames + rate * (shape.row_convolution - 1);
}
template <class Kind>
int64_t look_ahead(const Kind& options) {
  int64_t frames = 0, rate = 1;
  for (const ConvBlockOptions& block : blocks_of(options)) {
    frames += rate * rows_after(block.kernel, block.dilation);
    rate *= block.stride;
    frames += rate * (block.repeat - 1) * rows_after(block.kernel, block.dilation);
  }
  return frames;
}

constexpr const char* kCanStream =
    "; a model that sees no future is deepspeech2 with model.direction = \"forward\"";

std::string stream_problem_of(const DeepSpeech2Options& options) {
  if (!shape_of(options).bidirectional) return "";
  return "its recurrent layers read every utterance backward too (model.direction = \"both\"), "
         "beginning at an end that is not there yet" +
         std::string(kCanStream);
}
std::string stream_problem_of(const ConformerOptions& /*options*/) {
  return "each row of a conformer attends to the whole utterance" + std::string(kCanStream);
}
std::string stream_problem_of(const SquareResNetOptions& /*options*/) {
  return "it reads the utterance as a whole" + std::string(kCanStream);
}
template <class Kind>
std::string stream_problem_of(const Kind& options) {
  return std::string("each row of ") + Kind::kName + " sees " +
         std::to_string(look_ahead(options)) + " frames of the future" + kCanStream;
}

int64_t published_features(const DeepSpeech2Options& options) {
  return options.preset == "deepspeech2_small" ? 96 : 160;
}
int64_t published_features(const ConformerOptions& /*options*/) {
  return 80;
}
int64_t published_features(const SquareResNetOptions& /*options*/) {
  return 128;
}
template <class Kind>
int64_t published_features(const Kind& /*options*/) {
  return 64;
}

}  // namespace

DeepSpeech2Shape shape_of(const DeepSpeech2Options& options) {
  const auto given = [](int64_t key, int64_t preset) { return key > 0 ? key : preset; };
  const DeepSpeech2Preset* preset = deepspeech2_preset(options);
  DeepSpeech2Shape shape;
  if (preset != nullptr) {
    shape.convolutions = preset_convolutions(*preset);
    shape.num_layers = preset->num_layers;
    shape.hidden_dim = preset->hidden_dim;
    shape.bidirectional = preset->bidirectional;
    shape.row_convolution = preset->row_convolution;
    shape.output_dim = preset->output_dim;
  }
  if (!options.convolutions.empty()) shape.convolutions = options.convolutions;
  shape.num_layers = given(options.num_layers, shape.num_layers);
  shape.hidden_dim = given(options.hidden_dim, shape.hidden_dim);
  shape.row_convolution = given(options.row_convolution, shape.row_convolution);
  shape.output_dim = given(options.output_dim, shape.output_dim);
  if (options.direction != "auto") shape.bidirectional = options.direction == "both";
  return shape;
}

std::vector<ConvBlockOptions> blocks_of(const Wave2LetterOptions& options) {
  return own_or_preset(options);
}
std::vector<ConvBlockOptions> blocks_of(const JasperOptions& options) {
  return own_or_preset(options);
}
std::vector<ConvBlockOptions> blocks_of(const QuartzNetOptions& options) {
  return own_or_preset(options);
}
std::vector<ConvBlockOptions> blocks_of(const LasOptions& options) {
  return own_or_preset(options);
}

int64_t output_length(const SpeechModelOptions& options, int64_t frames) {
  if (reads_as_a_whole(options)) return frames > 0 ? 1 : 0;
  return options.visit([&](const auto& kind) {
    int64_t rows = frames;
    for (const int64_t stride : strides_of(kind)) rows = rows_behind(rows, stride);
    return rows;
  });
}

int64_t frames_per_row(const SpeechModelOptions& options) {
  return options.visit([](const auto& kind) {
    int64_t product = 1;  // also of what reads_as_a_whole(), whose row begins at frame 0
    for (const int64_t stride : strides_of(kind)) product *= stride;
    return product;
  });
}

bool reads_as_a_whole(const SpeechModelOptions& options) {
  return options.is<SquareResNetOptions>();
}

bool has_batch_norm(const SpeechModelOptions& options) {
  return !options.is<ConformerOptions>() ||
         options.as<ConformerOptions>().convolution_norm == "batch_norm";
}

std::string stream_problem(const SpeechModelOptions& options) {
  return options.visit([](const auto& kind) { return stream_problem_of(kind); });
}

int64_t stream_delay(const SpeechModelOptions& options) {
  if (!stream_problem(options).empty()) return 0;
  return look_ahead(options.as<DeepSpeech2Options>());
}

int64_t usual_features_of(const SpeechModelOptions& options) {
  return options.visit([](const auto& kind) { return published_features(kind); });
}

}  // namespace stretto::models
