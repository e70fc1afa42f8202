#include "models/speech/conformer_subsampling.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include <string>

#include "kernels/convolution/convolution.h"
#include "models/packed.h"
#include "nn/init_rules.h"

namespace stretto::models {
namespace {

constexpr int64_t kSubsamplingTaps = 3, kSubsamplingStride = 2;

int64_t half_of(int64_t features) {
  return (features + 1) / 2;
}

kernels::Offsets behind_subsampling(const kernels::Offsets& offsets) {
  return kernels::output_offsets(
      {.offsets = offsets, .kernel = kSubsamplingTaps, .stride = kSubsamplingStride});
}

}  // namespace

ConformerSubsamplingImpl::ConformerSubsamplingImpl(const nn::Init& init,
                                                   const ConformerOptions& options,
                                                   int64_t num_features)
    : num_features_(num_features),
      d_model_(sizes_of(options).d_model),
      factor_(options.subsampling_factor) {
  add_convolutions(init.child("convolutions"), options);
  int64_t width = times_.empty() ? num_features : d_model_;
  for (size_t i = 0; i < planes_.size(); ++i) width = half_of(width);
  if (!planes_.empty()) width *= d_model_;
  output_ = register_module("output", nn::Linear(init.child("output"), width, d_model_));
}

void ConformerSubsamplingImpl::add_convolutions(const nn::Init& init,
                                                const ConformerOptions& options) {
  const bool has_planes = options.subsampling == "conv2d";
  torch::nn::ModuleList list;
  for (int64_t i = 0; i < num_subsamplings(options); ++i) {
    const nn::Init place = init.child(std::to_string(i));
    if (has_planes) {
      const nn::PackedConv2dOptions over_both{.time_kernel = kSubsamplingTaps,
                                              .column_kernel = kSubsamplingTaps,
                                              .time_stride = kSubsamplingStride,
                                              .column_stride = kSubsamplingStride};
      planes_.emplace_back(place, i == 0 ? 1 : d_model_, d_model_, over_both);
      plane_biases_.push_back(
          planes_.back()->register_parameter("bias", place.constant("bias", d_model_, 0.0)));
      list->push_back(planes_.back());
    } else {
      const nn::Conv1dOptions over_time{
          .kernel = kSubsamplingTaps,
          .stride = kSubsamplingStride,
          .bias = true,
          .rule = nn::InitRule{.distribution = nn::Distribution::kHeNormal, .number = 1}};
      times_.emplace_back(place, i == 0 ? num_features_ : d_model_, d_model_, over_time);
      list->push_back(times_.back());
    }
  }
  register_module("convolutions", list);
}

nn::PackedRows ConformerSubsamplingImpl::forward(const nn::PackedRows& frames) const {
  TORCH_CHECK(
      frames.values.defined() && frames.values.dim() == 2 && frames.values.size(1) == num_features_,
      "[conformer] frames must be [N, ", num_features_, "], got ",
      frames.values.defined() ? frames.values.sizes() : at::IntArrayRef());
  at::Tensor x = frames.values;
  if (x.size(0) == 0) return behind_stride(frames, factor_, x.new_zeros({0, d_model_}));
  kernels::Offsets offsets = frames.offsets;
  for (size_t i = 0; i < planes_.size(); ++i) {
    const at::Tensor rows = planes_[i]->forward(x, offsets);
    // The channels of each frequency are a row to the activation.
    x = kernels::bias_activation_dropout(rows.view({-1, d_model_}), plane_biases_[i],
                                         kernels::Activation::kRelu, {})
            .view(rows.sizes());
    offsets = behind_subsampling(offsets);
  }
  for (const nn::Conv1d& convolution : times_) {
    x = at::relu(convolution->forward(x, offsets));
    offsets = behind_subsampling(offsets);
  }
  return behind_stride(frames, factor_, output_->forward(x));
}

double ConformerSubsamplingImpl::operations() const {
  double sum = 0, rate = 1;
  int64_t features = num_features_;
  for (const nn::PackedConv2d& convolution : planes_) {
    rate /= kSubsamplingStride;
    sum += rate * convolution->operations(features);
    features = half_of(features);
  }
  for (const nn::Conv1d& convolution : times_) {
    rate /= kSubsamplingStride;
    sum += rate * convolution->operations();
  }
  return sum + rate * output_->operations();
}

at::Tensor ConformerSubsamplingImpl::first_filters() const {
  if (!planes_.empty()) return planes_.front()->weight;
  const int64_t taps = times_.empty() ? 1 : kSubsamplingTaps;
  const at::Tensor& weight = times_.empty() ? output_->weight : times_.front()->weight;
  return weight.view({d_model_, 1, taps, num_features_});
}

}  // namespace stretto::models
