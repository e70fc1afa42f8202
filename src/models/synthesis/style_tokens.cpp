#include "models/synthesis/style_tokens.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "kernels/offsets.h"
#include "models/recurrent_options.h"
#include "nn/watch.h"

namespace stretto::models {
namespace {

constexpr std::array<int64_t, 6> kReferenceChannels{32, 32, 64, 64, 128, 128};

/// A plain GRU.
RecurrentPart reference_part() {
  LstmEncoderOptions options;
  options.cell = "gru";
  options.dropout = 0;
  options.init_bound = 0;
  return RecurrentPart(options);
}

/// One plane [1, C, T', W'] of each sentence as rows [sum of T', C, W'], and back.
at::Tensor rows_of_planes(const std::vector<at::Tensor>& planes) {
  std::vector<at::Tensor> rows;
  for (const at::Tensor& plane : planes) rows.push_back(plane.squeeze(0).permute({1, 0, 2}));
  return at::cat(rows);
}

void take_rows_of_planes(std::vector<at::Tensor>& planes, const at::Tensor& rows) {
  int64_t begin = 0;
  for (at::Tensor& plane : planes) {
    const int64_t count = plane.size(2);
    plane = rows.narrow(0, begin, count).permute({1, 0, 2}).unsqueeze(0);
    begin += count;
  }
}

kernels::Offsets plane_offsets(const std::vector<at::Tensor>& planes, at::Device device) {
  std::vector<int64_t> lengths;
  for (const at::Tensor& plane : planes) lengths.push_back(plane.size(2));
  return kernels::offsets_of(lengths, device);
}

}  // namespace

ReferenceEncoderImpl::ReferenceEncoderImpl(const nn::Init& init, int64_t width,
                                           const StyleTokenOptions& options)
    : part_(reference_part()) {
  int64_t channels = 1, bands = width;
  for (size_t i = 0; i < kReferenceChannels.size(); ++i) {
    const std::string number = std::to_string(i);
    const int64_t out = kReferenceChannels[i];
    convolutions_.push_back(
        register_module("convolution" + number,
                        nn::Conv2d(init.child("convolution" + number), channels, out,
                                   nn::Conv2dOptions{.kernel = 3, .stride = 2, .padding = 1})));
    norms_.push_back(register_module(
        "norm" + number, nn::BatchNorm(init.child("norm" + number), out,
                                       nn::BatchNormOptions{.single_by_running = true})));
    channels = out;
    bands = (bands + 1) / 2;
  }
  gru_ = register_module(
      "gru", RecurrentLayer(init.child("gru"), part_, channels * bands, options.reference_dim));
}

at::Tensor ReferenceEncoderImpl::forward(const nn::PackedRows& frames) const {
  const at::Tensor bounds = frames.offsets.values.to(at::kCPU, at::kLong).contiguous();
  const int64_t* bound = bounds.const_data_ptr<int64_t>();
  std::vector<at::Tensor> planes;
  for (int64_t i = 0; i + 1 < bounds.numel(); ++i) {
    planes.push_back(
        frames.values.narrow(0, bound[i], bound[i + 1] - bound[i]).unsqueeze(0).unsqueeze(0));
  }
  for (size_t i = 0; i < convolutions_.size(); ++i) {
    for (at::Tensor& plane : planes) plane = convolutions_[i]->forward(plane);
    take_rows_of_planes(planes, norms_[i]->forward(rows_of_planes(planes)).relu());
  }
  const at::Tensor rows = rows_of_planes(planes).flatten(1);
  const kernels::Recurrent layer{.cell = {.cell = part_.cell},
                                 .offsets = plane_offsets(planes, rows.device())};
  return nn::watch(*this, gru_->forward(rows, {}, layer).last.h);
}

StyleTokensImpl::StyleTokensImpl(const nn::Init& init, int64_t width,
                                 const StyleTokenOptions& options)
    : num_heads_(options.num_heads) {
  const int64_t token = options.dim / options.num_heads;
  const nn::LinearOptions plain{.bias = false};
  reference_ =
      register_module("reference", ReferenceEncoder(init.child("reference"), width, options));
  query_ = register_module(
      "query", nn::Linear(init.child("query"), options.reference_dim, options.dim, plain));
  key_ = register_module("key", nn::Linear(init.child("key"), token, options.dim, plain));
  value_ = register_module("value", nn::Linear(init.child("value"), token, options.dim, plain));
  tokens_ = register_parameter("tokens",
                               init.normal("tokens", options.num_tokens, token, /*stddev=*/0.5));
}

at::Tensor StyleTokensImpl::forward(const nn::PackedRows& reference, int64_t sentences) const {
  const at::Tensor tokens = tokens_.tanh();
  const at::Tensor values = value_->forward(tokens);
  if (!reference.values.defined()) return values.mean(0, /*keepdim=*/true).expand({sentences, -1});
  const auto in_heads = [&](const at::Tensor& rows) {  // [H, rows, dim / H]
    return rows.view({rows.size(0), num_heads_, -1}).transpose(0, 1);
  };
  const at::Tensor query = in_heads(query_->forward(reference_->forward(reference)));
  const at::Tensor keys = in_heads(key_->forward(tokens));
  const double scale = 1 / std::sqrt(static_cast<double>(query.size(2)));
  const at::Tensor weights = at::softmax(at::matmul(query, keys.transpose(1, 2)) * scale, 2);
  const at::Tensor styles = at::matmul(weights, in_heads(values)).transpose(0, 1);
  return nn::watch(*this, styles.reshape({query.size(1), -1}));
}

}  // namespace stretto::models
