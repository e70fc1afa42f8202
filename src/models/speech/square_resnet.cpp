#include "models/speech/square_resnet.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace stretto::models {

at::Tensor squares_of(const nn::PackedRows& frames, int64_t num_frames) {
  const at::Tensor& values = frames.values;
  const int64_t num_rows = values.size(0), width = values.size(1);
  const at::Tensor bounds = frames.offsets.values.to(at::kLong);
  const at::Tensor begins = bounds.slice(0, 0, -1).unsqueeze(1);
  const at::Tensor lengths = at::diff(bounds).unsqueeze(1);
  // Frames of zeros in front; below 0, how many frames are cut off there. Rounded towards 0.
  const at::Tensor before = at::div(num_frames - lengths, 2, "trunc");
  const at::Tensor places = at::arange(num_frames, bounds.options()) - before;  // [B, T]
  const at::Tensor is_there = (places >= 0).logical_and(places < lengths);
  // A row of zeros stands behind all others.
  const at::Tensor rows = (begins + places).masked_fill(is_there.logical_not(), num_rows);
  const at::Tensor with_zeros = at::cat({values, values.new_zeros({1, width})});
  return with_zeros.index_select(0, rows.flatten()).view({lengths.size(0), 1, num_frames, width});
}

SquareResNetEncoder::SquareResNetEncoder(const SquareResNetOptions& options, const SpeechPart& part)
    : num_frames_(options.num_frames > 0 ? options.num_frames : part.num_features),
      num_features_(part.num_features),
      resnet_(register_module(
          "resnet", std::make_shared<ResNet>(options, ImagePart{.init = part.init.child("resnet"),
                                                                .channels = 1,
                                                                .num_labels = 0}))) {}

Encoded SquareResNetEncoder::forward(const nn::PackedRows& frames, const ForwardContext& context) {
  const at::Tensor& bounds = frames.offsets.values;
  const int64_t count = bounds.size(0) - 1;
  ImageInput input{.pixels = squares_of(frames, num_frames_)};
  Encoded encoded;
  if (frames.row_keys.defined() && frames.num_rows() > 0) {
    // An utterance has the key of its first frame.
    const at::Tensor first = bounds.slice(0, 0, -1).to(at::kLong);
    input.row_keys = frames.row_keys.index_select(0, first.clamp_max(frames.num_rows() - 1));
    encoded.rows.row_keys = input.row_keys;
  }
  encoded.keys = resnet_->features(input, context);
  encoded.rows.positions = at::zeros({count}, bounds.options().dtype(at::kLong));
  encoded.rows.offsets = {.values = at::arange(count + 1, bounds.options()), .max_length = 1};
  return encoded;
}

double SquareResNetEncoder::operations(double length) const {
  return resnet_->operations(num_frames_, num_features_) / std::max(1.0, length);
}

}  // namespace stretto::models
