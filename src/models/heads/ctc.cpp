#include "models/heads/ctc.h"

#include <ATen/ATen.h>

#include "models/operations.h"

namespace stretto::models {
namespace {

/// The labels of a class for each frame: repetitions are one, and blanks are left out.
Alignment collapsed(const int64_t* classes, const double* log_p, int64_t num_frames,
                    int64_t blank) {
  Alignment found;
  for (int64_t t = 0; t < num_frames; ++t) {
    found.log_prob += log_p[t];
    if (classes[t] == blank) continue;
    if (t > 0 && classes[t] == classes[t - 1]) {
      ++found.labels.back().num_frames;
    } else {
      found.labels.push_back({.label = classes[t], .first_frame = t, .num_frames = 1});
    }
  }
  return found;
}

}  // namespace

CtcHead::CtcHead(const nn::Init& init, int64_t width, int64_t num_labels)
    : num_labels_(num_labels) {
  TORCH_CHECK(num_labels > 0, "[ctc] there must be labels, got ", num_labels);
  output_ = register_module("output", nn::Linear(init.child("output"), width, num_labels + 1));
}

at::Tensor CtcHead::scores(const at::Tensor& rows) const {
  const at::Tensor scores = output_->forward(rows);
  return scores.scalar_type() == at::kDouble ? scores : scores.to(at::kFloat);
}

kernels::CtcLosses CtcHead::losses(const at::Tensor& scores, const kernels::Offsets& frames,
                                   const nn::PackedRows& labels) const {
  return kernels::ctc_loss(
      scores,
      {.frames = frames, .labels = labels.ids, .label_offsets = labels.offsets, .blank = blank()});
}

std::vector<Alignment> CtcHead::best_alignments(const at::Tensor& scores,
                                                const kernels::Offsets& frames) const {
  const at::NoGradGuard no_grad;
  const at::Tensor log_p = at::log_softmax(scores, 1);
  const at::Tensor best = log_p.argmax(1);
  const at::Tensor classes = best.cpu(),
                   values = log_p.gather(1, best.unsqueeze(1)).squeeze(1).to(at::kCPU, at::kDouble);
  const at::Tensor offsets = frames.values.to(at::kCPU, at::kInt);
  const int32_t* bounds = offsets.const_data_ptr<int32_t>();
  std::vector<Alignment> found;
  for (int64_t b = 0; b + 1 < offsets.size(0); ++b) {
    found.push_back(collapsed(classes.const_data_ptr<int64_t>() + bounds[b],
                              values.const_data_ptr<double>() + bounds[b],
                              bounds[b + 1] - bounds[b], blank()));
  }
  return found;
}

double CtcHead::operations() const {
  return weight_operations(*this);
}

}  // namespace stretto::models
