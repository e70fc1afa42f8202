#include "models/speech/time_delay_encoder.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include <utility>

#include "models/packed.h"
#include "models/parts.h"
#include "models/speech/activations.h"

namespace stretto::models {
namespace {

/// Sites of dropout that a block has for itself.
constexpr uint64_t kSitesPerBlock = 1000;

}  // namespace

TimeDelayBlockImpl::TimeDelayBlockImpl(const nn::Init& init, const ConvBlockOptions& options,
                                       const TimeDelayShape& shape, int64_t in,
                                       const std::vector<int64_t>& inputs)
    : dropout_(options.dropout * shape.dropout_scale),
      clips_(shape.clips),
      stride_(options.stride) {
  const auto conv = [&](const std::string& name, int64_t from, int64_t to,
                        const nn::Conv1dOptions& form) {
    return register_module(name, nn::Conv1d(init.child(name), from, to, form));
  };
  const auto norm = [&](const std::string& name) {
    return register_module(name, nn::BatchNorm(init.child(name), options.channels, shape.norm));
  };
  for (int64_t r = 0; r < options.repeat; ++r) {
    const std::string number = std::to_string(r);
    nn::Conv1dOptions form{.kernel = options.kernel,
                           .stride = r == 0 ? options.stride : 1,
                           .dilation = options.dilation};
    if (options.separable) {
      form.depthwise = true;
      depthwise_.push_back(conv("depthwise" + number, in, in, form));
      form = {};
    }
    form.groups = options.groups;
    convs_.push_back(conv("conv" + number, in, options.channels, form));
    norms_.push_back(norm("norm" + number));
    in = options.channels;
  }
  for (const int64_t channels : inputs) {
    const std::string number = std::to_string(residual_convs_.size());
    residual_convs_.push_back(conv("residual" + number, channels, options.channels, {}));
    residual_norms_.push_back(norm("residual_norm" + number));
  }
}

at::Tensor TimeDelayBlockImpl::residuals(const nn::PackedRows& rows,
                                         const std::vector<at::Tensor>& inputs) const {
  at::Tensor sum;
  for (size_t i = 0; i < residual_convs_.size(); ++i) {
    const nn::NormEnd end{.residual = sum};
    sum = nn::convolved_rows(inputs[i], rows.offsets, residual_convs_[i], residual_norms_[i], end);
  }
  return sum;
}

nn::PackedRows TimeDelayBlockImpl::forward(const nn::PackedRows& rows,
                                           const std::vector<at::Tensor>& inputs,
                                           const ForwardContext& context, uint64_t site) const {
  TORCH_CHECK(inputs.size() == residual_convs_.size(), "[conv_block] ", residual_convs_.size(),
              " inputs are added, got ", inputs.size());
  nn::PackedRows now = rows;
  for (size_t r = 0; r < convs_.size(); ++r) {
    const bool strides = r == 0 && stride_ > 1;
    at::Tensor x = now.values;
    kernels::Offsets offsets = now.offsets;
    if (!depthwise_.empty()) {
      x = depthwise_[r]->forward(x, offsets);
      if (strides) offsets = kernels::output_offsets({.offsets = offsets, .stride = stride_});
    }
    at::Tensor residual;
    if (r + 1 == convs_.size()) residual = residuals(rows, inputs);
    x = activated(x, offsets, convs_[r], norms_[r], residual, clips_);
    now = strides ? behind_stride(now, stride_, x) : with_values(now, x);
    now.values = kernels::dropout(now.values, context.dropout(now.row_keys).at(dropout_, site + r));
  }
  return now;
}

double TimeDelayBlockImpl::operations() const {
  double sum = 0;
  for (const auto* list : {&depthwise_, &convs_, &residual_convs_}) {
    for (const nn::Conv1d& conv : *list) sum += conv->operations();
  }
  return sum;
}

at::Tensor TimeDelayBlockImpl::first_filters() const {
  if (!depthwise_.empty()) return depthwise_.front()->weight.unsqueeze(1).unsqueeze(3);
  const nn::Conv1d& first = convs_.front();
  const at::Tensor& weight = first->weight;
  return weight.reshape({weight.size(0), 1, first->options().kernel, -1});
}

TimeDelayEncoder::TimeDelayEncoder(const TimeDelayShape& shape, const SpeechPart& part)
    : shape_(shape) {
  torch::nn::ModuleList list;
  std::vector<int64_t> dense;  // channels of the inputs of dense blocks
  int64_t in = part.num_features;
  for (const ConvBlockOptions& block : shape_.blocks) {
    std::vector<int64_t> inputs;
    if (block.residual == "block") inputs = {in};
    if (block.residual == "dense") {
      dense.push_back(in);
      inputs = dense;
    }
    const nn::Init place = part.init.child("blocks").child(std::to_string(blocks_.size()));
    blocks_.push_back(TimeDelayBlock(place, block, shape_, in, inputs));
    list->push_back(blocks_.back());
    in = block.channels;
  }
  register_module("blocks", list);
}

Encoded TimeDelayEncoder::forward(const nn::PackedRows& frames, const ForwardContext& context) {
  nn::PackedRows rows = frames;
  std::vector<at::Tensor> dense;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    std::vector<at::Tensor> inputs;
    if (shape_.blocks[i].residual == "block") inputs = {rows.values};
    if (shape_.blocks[i].residual == "dense") {
      dense.push_back(rows.values);
      inputs = dense;
    }
    rows = blocks_[i]->forward(rows, inputs, context, kSpeechSites + i * kSitesPerBlock);
  }
  Encoded encoded;
  encoded.keys = std::exchange(rows.values, at::Tensor());
  encoded.rows = std::move(rows);
  return encoded;
}

double TimeDelayEncoder::operations(double /*length*/) const {
  double sum = 0, rate = 1;  // rows for a frame
  for (size_t i = 0; i < blocks_.size(); ++i) {
    rate /= static_cast<double>(shape_.blocks[i].stride);
    sum += rate * blocks_[i]->operations();
  }
  return sum;
}

int64_t TimeDelayEncoder::output_length(int64_t frames) const {
  for (const ConvBlockOptions& block : shape_.blocks) {
    frames = (frames + block.stride - 1) / block.stride;
  }
  return frames;
}

}  // namespace stretto::models
