// For check_with_torch.py: what small models of speech compute, with gradients.
//   speech_tool FOLDER   writes NAME.safetensors for each of them: `frames` [N, F] with
//                        `frame_offsets`, `labels` with `label_offsets`; `scores` [M, L + 1], `ctc`
//                        and `attention` [B] (of a model with a decoder); `model.…` every parameter
//                        and buffer, `gradient.…` of the sum of all losses
#include <torch/torch.h>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "data/batch.h"
#include "models/packed.h"
#include "models/speech/speech_model.h"
#include "store/safetensors.h"

namespace {

using namespace stretto;

constexpr int64_t kFeatures = 12, kLabels = 5;

/// Normal numbers that are the same in every run.
at::Tensor noise(at::IntArrayRef shape, uint64_t seed) {
  return at::randn(shape, at::detail::createCPUGenerator(seed), at::kFloat);
}

models::ConvBlockOptions block(int64_t channels, int64_t kernel, int64_t repeat = 1) {
  models::ConvBlockOptions options;
  options.channels = channels;
  options.kernel = kernel;
  options.repeat = repeat;
  return options;
}

/// A convolution with a stride, two blocks of two, one with a dilation.
template <class Options>
Options of_blocks(const char* residual, bool separable) {
  Options options;
  options.preset = "none";
  options.blocks = {block(8, 5), block(6, 3, 2), block(7, 5, 2), block(9, 3), block(8, 1)};
  options.blocks[0].stride = 2;
  options.blocks[3].dilation = 2;
  for (const size_t i : {size_t{1}, size_t{2}}) options.blocks[i].residual = residual;
  for (size_t i = 0; separable && i < 4; ++i) options.blocks[i].separable = true;
  return options;
}

models::DeepSpeech2Options deepspeech2(const char* cell, const char* direction) {
  models::DeepSpeech2Options options;
  options.preset = "none";
  models::PlaneConvOptions first, second;
  first.channels = 3;
  first.time_kernel = 5;
  first.frequency_kernel = 7;
  first.time_stride = 2;
  second.channels = 2;
  second.time_kernel = 3;
  second.frequency_kernel = 5;
  options.convolutions = {first, second};
  options.cell = cell;
  options.direction = direction;
  options.num_layers = 2;
  options.hidden_dim = 6;
  options.row_convolution = direction == std::string("forward") ? 3 : 1;
  options.output_dim = 9;
  return options;
}

models::ConformerOptions conformer(const char* positions, const char* subsampling,
                                   const char* norm) {
  models::ConformerOptions options;
  options.preset = "none";
  options.num_layers = 2;
  options.d_model = 8;
  options.num_heads = 2;
  options.ffn_dim = 12;
  options.kernel = 5;
  options.positions = positions;
  options.subsampling = subsampling;
  options.convolution_norm = norm;
  return options;
}

models::AttentionDecoderOptions decoder(bool coverage) {
  models::AttentionDecoderOptions options;
  options.weight = 0.75;
  options.num_layers = 2;
  options.hidden_dim = 7;
  options.embedding_dim = 4;
  options.attention_dim = 5;
  options.location_filters = 3;
  options.location_kernel = 5;
  options.coverage = coverage;
  return options;
}

std::map<std::string, models::SpeechModelOptions> small_models() {
  auto las = of_blocks<models::LasOptions>("none", false);
  las.decoder = decoder(true);
  models::ConformerOptions joint = conformer("relative", "conv2d", "batch_norm");
  joint.decoder = decoder(false);
  return {{"wave2letter", of_blocks<models::Wave2LetterOptions>("none", false)},
          {"jasper", of_blocks<models::JasperOptions>("dense", false)},
          {"quartznet", of_blocks<models::QuartzNetOptions>("block", true)},
          {"deepspeech2", deepspeech2("gru", "both")},
          {"deepspeech2_forward", deepspeech2("lstm", "forward")},
          {"conformer", conformer("relative", "conv2d", "batch_norm")},
          {"conformer_rotary", conformer("rotary", "conv1d", "layer_norm")},
          {"conformer_joint", joint},
          {"las", las}};
}

/// First weights that hide nothing: biases are not zero, statistics not those of unit rows.
void shake(torch::nn::Module& model) {
  const at::NoGradGuard no_grad;
  uint64_t seed = 100;
  for (const auto& item : model.named_parameters()) {
    if (item.value().dim() == 1) item.value().add_(0.3 * noise(item.value().sizes(), ++seed));
  }
  for (const auto& item : model.named_buffers()) {
    item.value().add_(noise(item.value().sizes(), ++seed).abs() * 0.2);
  }
}

nn::PackedRows frames_of_batch() {
  data::Ragged<float> frames;
  frames.width = kFeatures;
  uint64_t seed = 10;
  for (const int64_t length : {41, 7, 26, 60}) {
    const at::Tensor values = noise({length, kFeatures}, ++seed).contiguous();
    frames.append({values.const_data_ptr<float>(), static_cast<size_t>(values.numel())});
  }
  return models::pack(frames, nullptr, at::kCPU);
}

/// The second utterance is too short for its labels where frames become a quarter as many.
nn::PackedRows labels_of_batch() {
  data::PackedTokens labels;
  for (const auto& one :
       std::vector<std::vector<int64_t>>{{1, 4, 4, 0}, {2, 0, 3}, {}, {3, 3, 1, 2, 0, 4}}) {
    labels.append(one);
  }
  return models::pack(labels, nullptr, at::kCPU);
}

using Tensors = std::map<std::string, at::Tensor>;

void write(const std::filesystem::path& path, const Tensors& tensors) {
  std::vector<store::TensorView> views;
  std::vector<at::Tensor> alive;
  for (const auto& [name, tensor] : tensors) {
    const bool is_float = at::isFloatingType(tensor.scalar_type());
    alive.push_back(tensor.detach().to(is_float ? at::kFloat : at::kLong).contiguous());
    const at::Tensor& kept = alive.back();
    views.push_back({name,
                     is_float ? store::DType::kF32 : store::DType::kI64,
                     kept.sizes().vec(),
                     {static_cast<const char*>(kept.const_data_ptr()), kept.nbytes()}});
  }
  store::write_safetensors(path, views, {});
}

void run(const std::filesystem::path& path, const models::SpeechModelOptions& options) {
  const auto model = models::make_speech_model(
      {.model = options, .num_features = kFeatures, .num_labels = kLabels});
  shake(*model);
  model->eval();
  const nn::PackedRows frames = frames_of_batch(), labels = labels_of_batch();
  const models::Encoded encoded = model->encode(frames, {});
  const models::SpeechLosses losses = model->losses(encoded, labels, {});
  losses.each.sum().backward();
  Tensors tensors{{"frames", frames.values},
                  {"frame_offsets", frames.offsets.values},
                  {"labels", labels.ids},
                  {"label_offsets", labels.offsets.values},
                  {"scores", model->ctc_scores(encoded)},
                  {"ctc", losses.ctc.defined() ? losses.ctc : losses.each}};
  if (losses.attention.defined()) tensors["attention"] = losses.attention;
  for (const auto& item : model->named_buffers()) tensors["model." + item.key()] = item.value();
  for (const auto& item : model->named_parameters()) {
    tensors["model." + item.key()] = item.value();
    if (item.value().grad().defined()) tensors["gradient." + item.key()] = item.value().grad();
  }
  write(path, tensors);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: speech_tool FOLDER\n";
    return 2;
  }
  try {
    for (const auto& [name, options] : small_models()) {
      run(std::filesystem::path(argv[1]) / (name + ".safetensors"), options);
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
