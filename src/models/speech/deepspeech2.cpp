#include "models/speech/deepspeech2.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include <string>
#include <utility>

#include "models/operations.h"
#include "models/packed.h"
#include "models/parts.h"
#include "models/recurrent_options.h"
#include "models/speech/activations.h"
#include "models/speech/window_stream.h"

namespace stretto::models {

namespace {

/// The site of the dropout behind the linear layer, counted from the model's first one.
constexpr uint64_t kOutputSite = 900'000;

/// Two modules below one name, whose work others do.
struct NamedPairImpl : torch::nn::Module {
  template <class First, class Second>
  NamedPairImpl(const char* first_name, const First& first, const char* second_name,
                const Second& second) {
    register_module(first_name, first);
    register_module(second_name, second);
  }
};

/// Plain recurrent layers, without dropout of their own, from Xavier-uniform matrices.
RecurrentPart plain_recurrent_part(const DeepSpeech2Options& options, int64_t num_layers) {
  LstmEncoderOptions plain;
  plain.cell = options.cell;
  plain.num_layers = num_layers;
  plain.residual_from = num_layers;
  plain.dropout = 0;
  plain.init_bound = 0;
  return RecurrentPart(plain);
}

kernels::Offsets of_one_sequence(const at::Tensor& rows) {
  const int64_t length = rows.size(0);
  return {.values = at::tensor({int64_t{0}, length}, at::kInt).to(rows.device()),
          .max_length = length};
}

}  // namespace

/// Pieces of an utterance on their way through the layers.
class DeepSpeech2Stream : public RowStream {
 public:
  explicit DeepSpeech2Stream(const DeepSpeech2Encoder& encoder) : encoder_(encoder) {
    const at::NoGradGuard no_grad;
    const at::TensorOptions type = encoder.output_->weight.options().requires_grad(false);
    at::Tensor none = at::empty({0, encoder.num_features_}, type);
    for (size_t i = 0; i < encoder.convolutions_.size(); ++i) {
      const nn::PackedConv2dOptions& form = encoder.convolutions_[i].conv->options();
      const int64_t left = (form.time_kernel - 1) / 2;
      const RowWindow window{
          .left = left, .right = form.time_kernel - 1 - left, .stride = form.time_stride};
      const auto layer = [this, i](const at::Tensor& rows) {
        return encoder_.convolved(i, rows, of_one_sequence(rows));
      };
      windows_.push_back(std::make_unique<WindowStream>(window, layer, none));
      none = layer(none);
    }
    states_.resize(encoder.recurrences_.size());
    const RowWindow ahead{.right = encoder.shape_.row_convolution - 1};
    const auto layer = [this](const at::Tensor& rows) {
      return encoder_.behind_recurrences(rows, of_one_sequence(rows));
    };
    none = at::empty({0, encoder.shape_.recurrent_width()}, type);
    windows_.push_back(std::make_unique<WindowStream>(ahead, layer, none));
  }

  at::Tensor push(const at::Tensor& frames) override { return through(frames, false); }
  at::Tensor finish() override {
    const at::TensorOptions type = encoder_.output_->weight.options().requires_grad(false);
    return through(at::empty({0, encoder_.num_features_}, type), true);
  }

 private:
  at::Tensor through(const at::Tensor& frames, bool is_end) {
    const at::NoGradGuard no_grad;
    at::Tensor x = frames;
    for (size_t i = 0; i < windows_.size(); ++i) {
      if (i + 1 == windows_.size()) x = recurred(x);
      const at::Tensor rows = windows_[i]->push(x);
      x = is_end ? at::cat({rows, windows_[i]->finish()}) : rows;
    }
    return encoder_.projected(x);
  }

  at::Tensor recurred(at::Tensor x) {
    if (x.size(0) == 0) return x.new_empty({0, encoder_.shape_.recurrent_width()});
    nn::PackedRows rows;
    rows.offsets = of_one_sequence(x);
    const RecurrentPass pass(encoder_.part_, rows, {}, 0);
    for (size_t i = 0; i < states_.size(); ++i) {
      kernels::RecurrentOutput out = encoder_.recurrences_[i].forward->forward(
          x, states_[i], pass.of(static_cast<int64_t>(i), Direction::kForward));
      states_[i] = out.last;
      x = out.h;
    }
    return x;
  }

  const DeepSpeech2Encoder& encoder_;
  std::vector<std::unique_ptr<WindowStream>>
      windows_;                                  // the convolutions, then the row convolution
  std::vector<kernels::RecurrentState> states_;  // of each recurrent layer
};

DeepSpeech2Encoder::DeepSpeech2Encoder(const DeepSpeech2Options& options, const SpeechPart& part)
    : shape_(shape_of(options)),
      num_features_(part.num_features),
      columns_(part.num_features),
      clips_(options.activation == "clipped_relu"),
      dropout_(options.dropout),
      part_(plain_recurrent_part(options, shape_.num_layers)) {
  const nn::BatchNormOptions norm{.momentum = options.norm_momentum,
                                  .epsilon = options.norm_epsilon,
                                  .single_by_running = true};
  add_convolutions(part.init.child("convolutions"), norm);
  const int64_t channels = convolutions_.empty() ? 1 : shape_.convolutions.back().channels;
  add_recurrences(part.init.child("recurrent"), columns_ * channels);
  const int64_t width = shape_.recurrent_width();
  if (shape_.row_convolution > 1) {
    row_conv_ =
        register_module("row_conv", nn::Conv1d(part.init.child("row_conv"), width, width,
                                               nn::Conv1dOptions{.kernel = shape_.row_convolution,
                                                                 .border = kernels::Border::kAhead,
                                                                 .depthwise = true}));
    row_norm_ =
        register_module("row_norm", nn::BatchNorm(part.init.child("row_norm"), width, norm));
  }
  output_ =
      register_module("output", nn::Linear(part.init.child("output"), width, shape_.output_dim));
}

void DeepSpeech2Encoder::add_convolutions(const nn::Init& init, const nn::BatchNormOptions& norm) {
  torch::nn::ModuleList list;
  int64_t in = 1;
  for (const PlaneConvOptions& conv : shape_.convolutions) {
    const nn::Init place = init.child(std::to_string(convolutions_.size()));
    Convolution layer;
    layer.conv = nn::PackedConv2d(place.child("conv"), in, conv.channels,
                                  nn::PackedConv2dOptions{.time_kernel = conv.time_kernel,
                                                          .column_kernel = conv.frequency_kernel,
                                                          .time_stride = conv.time_stride,
                                                          .column_stride = conv.frequency_stride});
    layer.norm = nn::BatchNorm(place.child("norm"), conv.channels, norm);
    list->push_back(std::make_shared<NamedPairImpl>("conv", layer.conv, "norm", layer.norm));
    convolutions_.push_back(layer);
    columns_ = layer.conv->columns_out(columns_);
    in = conv.channels;
  }
  register_module("convolutions", list);
}

void DeepSpeech2Encoder::add_recurrences(const nn::Init& init, int64_t in) {
  torch::nn::ModuleList list;
  for (int64_t i = 0; i < shape_.num_layers; ++i) {
    const nn::Init place = init.child(std::to_string(i));
    Recurrence layer;
    if (shape_.bidirectional) {
      layer.forward = RecurrentLayer(place.child("forward"), part_, in, shape_.hidden_dim);
      layer.backward = RecurrentLayer(place.child("backward"), part_, in, shape_.hidden_dim);
      list->push_back(
          std::make_shared<NamedPairImpl>("forward", layer.forward, "backward", layer.backward));
    } else {
      layer.forward = RecurrentLayer(place, part_, in, shape_.hidden_dim);
      list->push_back(layer.forward);
    }
    recurrences_.push_back(layer);
    in = shape_.recurrent_width();
  }
  register_module("recurrent", list);
}

at::Tensor DeepSpeech2Encoder::convolved(size_t i, const at::Tensor& x,
                                         const kernels::Offsets& offsets) const {
  const Convolution& layer = convolutions_[i];
  const at::Tensor y = nn::convolved_rows(x, offsets, layer.conv, layer.norm, norm_end(clips_));
  return clips_ ? rectified(y, true) : y;
}

at::Tensor DeepSpeech2Encoder::recurred(size_t i, const at::Tensor& x,
                                        const RecurrentPass& pass) const {
  const auto number = static_cast<int64_t>(i);
  const at::Tensor dropped = pass.drop_input(x, number, i > 0 ? dropout_ : 0);
  const Recurrence& layer = recurrences_[i];
  const at::Tensor ahead =
      layer.forward->forward(dropped, {}, pass.of(number, Direction::kForward)).h;
  if (!layer.backward) return ahead;
  const at::Tensor back =
      layer.backward->forward(dropped, {}, pass.of(number, Direction::kBackward)).h;
  return at::cat({ahead, back}, 1);
}

at::Tensor DeepSpeech2Encoder::behind_recurrences(const at::Tensor& x,
                                                  const kernels::Offsets& offsets) const {
  if (!row_conv_) return x;
  return activated(x, offsets, row_conv_, row_norm_, {}, clips_);
}

at::Tensor DeepSpeech2Encoder::projected(const at::Tensor& x) const {
  return rectified(output_->forward(x), clips_);
}

Encoded DeepSpeech2Encoder::forward(const nn::PackedRows& frames, const ForwardContext& context) {
  nn::PackedRows rows = frames;
  for (size_t i = 0; i < convolutions_.size(); ++i) {
    const at::Tensor x = convolved(i, rows.values, rows.offsets);
    const int64_t stride = shape_.convolutions[i].time_stride;
    rows = stride > 1 ? behind_stride(rows, stride, x) : with_values(rows, x);
  }
  at::Tensor x = std::exchange(rows.values, at::Tensor());
  const RecurrentPass pass(part_, rows, context, kSpeechSites);
  for (size_t i = 0; i < recurrences_.size(); ++i) x = recurred(i, x, pass);
  x = projected(behind_recurrences(x, rows.offsets));
  Encoded encoded;
  encoded.keys =
      kernels::dropout(x, context.dropout(rows.row_keys).at(dropout_, kSpeechSites + kOutputSite));
  encoded.rows = std::move(rows);
  return encoded;
}

double DeepSpeech2Encoder::operations(double /*length*/) const {
  double sum = 0, rate = 1;  // rows for a frame
  int64_t columns = num_features_;
  for (size_t i = 0; i < convolutions_.size(); ++i) {
    rate /= static_cast<double>(shape_.convolutions[i].time_stride);
    sum += rate * convolutions_[i].conv->operations(columns);
    columns = convolutions_[i].conv->columns_out(columns);
  }
  // PackedConv2d is not counted by rows: all that is left here is.
  return sum + rate * weight_operations(*this);
}

int64_t DeepSpeech2Encoder::output_length(int64_t frames) const {
  for (const PlaneConvOptions& conv : shape_.convolutions) {
    frames = (frames + conv.time_stride - 1) / conv.time_stride;
  }
  return frames;
}

std::unique_ptr<RowStream> DeepSpeech2Encoder::stream() {
  if (shape_.bidirectional) return nullptr;
  return std::make_unique<DeepSpeech2Stream>(*this);
}

at::Tensor DeepSpeech2Encoder::first_filters() const {
  if (!convolutions_.empty()) return convolutions_.front().conv->weight;
  const at::Tensor& weight = recurrences_.front().forward->input->weight;
  return weight.view({weight.size(0), 1, 1, -1});
}

}  // namespace stretto::models
