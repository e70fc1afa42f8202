#include <ATen/ATen.h>

#include <cmath>
#include <span>
#include <utility>

#include "kernels/convolution/steps.h"
#include "models/synthesis/centaur.h"

namespace stretto::models {
namespace {

/// A causal convolution, and the rows that its next step sees.
struct ConvolutionState {
  CausalConvolution own;
  kernels::PackedConvolution packed;
  kernels::RowCache cache;

  ConvolutionState(CausalConvolution convolution, int64_t kernel)
      : own(std::move(convolution)),
        packed(own->convolution->effective().weight, own->convolution->effective().bias, kernel),
        cache(kernel) {}

  at::Tensor step(const at::Tensor& x) {
    return own->behind(kernels::time_convolution_step(packed, x, cache));
  }
};

/// Rows of a packed memory as a rectangle [L, longest, D].
at::Tensor rectangle(const at::Tensor& rows, const at::Tensor& index, int64_t lanes) {
  return rows.index_select(0, index).view({lanes, -1, rows.size(1)});
}

class CentaurSteps : public decoding::FrameModel {
 public:
  CentaurSteps(CentaurDecoder decoder, const CentaurMemory& memory, const at::Tensor& sentence_keys,
               uint64_t prenet_seed);

  int64_t frame_width() const override { return decoder_->parts.decoder_width(); }
  int64_t frames_per_step() const override { return decoder_->options.reduction; }
  const std::vector<int64_t>& source_rows() const override { return rows_; }
  at::TensorOptions like() const override { return frame_.options(); }
  void step(const decoding::FrameStep& out) override;
  void keep(std::span<const int64_t> lanes) override;

 private:
  at::Tensor prenet() const;
  /// Attention weights [L, longest] of a layer.
  at::Tensor weights(size_t layer, const at::Tensor& query);

  CentaurDecoder decoder_;
  uint64_t prenet_seed_;
  std::vector<int64_t> rows_, sentence_keys_;
  std::vector<ConvolutionState> convolutions_, layer_convolutions_;
  std::vector<at::Tensor> keys_, values_;  // of layers, [L, longest, D]
  std::vector<at::Tensor> centres_;        // of layers, int64 [L, 1]: where a step looked most
  at::Tensor is_row_;                      // bool [L, longest]
  at::Tensor places_;                      // int64 [1, longest]
  at::Tensor frame_;                       // [L, W]: the last one
  int64_t steps_ = 0;
};

CentaurSteps::CentaurSteps(CentaurDecoder decoder, const CentaurMemory& memory,
                           const at::Tensor& sentence_keys, uint64_t prenet_seed)
    : decoder_(std::move(decoder)), prenet_seed_(prenet_seed) {
  const at::Tensor offsets = memory.offsets.values.to(at::kLong);
  const at::Tensor counts = at::diff(offsets).unsqueeze(1);
  const int64_t lanes = counts.size(0);
  for (int64_t i = 0; i < lanes; ++i) {
    rows_.push_back(counts[i].item<int64_t>());
    sentence_keys_.push_back(sentence_keys[i].item<int64_t>());
  }
  places_ = at::arange(counts.max().item<int64_t>(), offsets.options()).unsqueeze(0);
  is_row_ = places_.lt(counts);
  const at::Tensor index = (offsets.slice(0, 0, -1).unsqueeze(1) + places_)
                               .clamp_max(memory.keys.front().size(0) - 1)
                               .flatten();
  const int64_t kernel = decoder_->options.decoder_kernel;
  for (const CausalConvolution& one : decoder_->convolutions) {
    convolutions_.emplace_back(one, kernel);
  }
  for (size_t i = 0; i < decoder_->layers.size(); ++i) {
    layer_convolutions_.emplace_back(decoder_->layers[i]->convolution, kernel);
    keys_.push_back(rectangle(memory.keys[i], index, lanes));
    values_.push_back(rectangle(memory.values[i], index, lanes));
    centres_.push_back(at::zeros({lanes, 1}, offsets.options()));
  }
  frame_ = at::zeros({lanes, frame_width()}, memory.keys.front().options());
}

at::Tensor CentaurSteps::prenet() const {
  std::vector<int64_t> keys;
  for (const int64_t key : sentence_keys_) keys.push_back(prenet_step_key(key, steps_));
  const at::Tensor row_keys = at::tensor(keys, at::kLong).to(frame_.device());
  return decoder_->prenet->forward(frame_, prenet_masks_of_step(prenet_seed_, row_keys));
}

at::Tensor CentaurSteps::weights(size_t layer, const at::Tensor& query) {
  const at::Tensor scores = at::matmul(keys_[layer], query.unsqueeze(2)).squeeze(2);
  at::Tensor seen = is_row_;
  const int64_t window = decoder_->options.attention_window;
  if (window > 0) seen = seen.logical_and((places_ - centres_[layer]).abs().le(window));
  const at::Tensor shares = at::softmax(scores.masked_fill(seen.logical_not(), -HUGE_VAL), 1);
  centres_[layer] = shares.argmax(1, /*keepdim=*/true);
  return shares;
}

void CentaurSteps::step(const decoding::FrameStep& out) {
  const at::NoGradGuard no_grad;
  at::Tensor x = decoder_->input->forward(prenet());
  for (ConvolutionState& one : convolutions_) x = x + one.step(x);
  const at::Tensor here = at::full({1}, steps_, places_.options());
  const at::Tensor place = decoder_->sinusoids(here, steps_ + 1, x);
  at::Tensor mean;
  for (size_t i = 0; i < decoder_->layers.size(); ++i) {
    const CentaurLayer& own = decoder_->layers[i];
    x = x + layer_convolutions_[i].step(own->convolution_norm->forward(x));
    const at::Tensor shares = weights(i, own->query_of(x, place));
    mean = mean.defined() ? mean + shares : shares;
    x = x + own->out->forward(at::matmul(shares.unsqueeze(1), values_[i]).squeeze(1));
    x = x + own->fed(x, {});
  }
  x = decoder_->final_norm->forward(x);
  const at::Tensor frames = decoder_->projection->forward(x);
  out.frames.copy_(frames);
  out.stop.copy_(at::sigmoid(decoder_->stop->forward(x)));
  out.weights.copy_((mean / static_cast<double>(decoder_->layers.size())).masked_select(is_row_));
  frame_ = frames.narrow(1, frames.size(1) - frame_width(), frame_width());
  ++steps_;
}

void CentaurSteps::keep(std::span<const int64_t> lanes) {
  const at::Tensor kept =
      at::tensor(at::ArrayRef<int64_t>(lanes.data(), lanes.size()), at::kLong).to(frame_.device());
  const auto take = [&](at::Tensor& x) { x = x.index_select(0, kept); };
  for (auto* all : {&keys_, &values_, &centres_}) {
    for (at::Tensor& one : *all) take(one);
  }
  take(is_row_);
  take(frame_);
  for (auto* all : {&convolutions_, &layer_convolutions_}) {
    for (ConvolutionState& one : *all) one.cache.reorder(kept);
  }
  for (auto* all : {&rows_, &sentence_keys_}) {
    for (size_t i = 0; i < lanes.size(); ++i) (*all)[i] = (*all)[static_cast<size_t>(lanes[i])];
    all->resize(lanes.size());
  }
}

}  // namespace

std::unique_ptr<decoding::FrameModel> make_centaur_steps(CentaurDecoder decoder,
                                                         const CentaurMemory& memory,
                                                         const at::Tensor& sentence_keys,
                                                         uint64_t prenet_seed) {
  const at::NoGradGuard no_grad;
  return std::make_unique<CentaurSteps>(std::move(decoder), memory, sentence_keys.to(at::kCPU),
                                        prenet_seed);
}

}  // namespace stretto::models
