#include "kernels/ctc/ctc.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <span>

#include "kernels/ctc/alignments.h"
#include "kernels/ctc/reference.h"
#include "kernels/dispatch.h"

namespace stretto::kernels {
namespace {

/// A batch on the CPU as raw numbers.
struct CtcRows {
  explicit CtcRows(const CtcTargets& targets)
      : frames_(targets.frames.values.to(at::kInt).contiguous()),
        label_offsets_(targets.label_offsets.values.to(at::kInt).contiguous()),
        labels_(targets.labels.contiguous()) {}

  int64_t size() const { return frames_.size(0) - 1; }
  int64_t first_frame(int64_t b) const { return frames_.const_data_ptr<int32_t>()[b]; }
  int64_t num_frames(int64_t b) const { return first_frame(b + 1) - first_frame(b); }
  std::span<const int64_t> labels(int64_t b) const {
    const int32_t* offsets = label_offsets_.const_data_ptr<int32_t>();
    return {labels_.const_data_ptr<int64_t>() + offsets[b],
            static_cast<size_t>(offsets[b + 1] - offsets[b])};
  }
  bool is_possible(int64_t b) const { return num_frames(b) >= ctc::frames_needed(labels(b)); }

 private:
  at::Tensor frames_, label_offsets_, labels_;
};

/// @param slopes  [N, C] of zeros, filled but for pairs that are impossible; undefined = not wanted
template <class T>
void fill_losses(const at::Tensor& scores, const CtcTargets& targets, const at::Tensor& losses,
                 const at::Tensor& slopes) {
  const CtcRows rows(targets);
  const int64_t classes = scores.size(1);
  const at::Tensor shares = at::softmax(scores.detach(), 1);
  const T *from = scores.const_data_ptr<T>(), *share = shares.const_data_ptr<T>();
  T* to = losses.mutable_data_ptr<T>();
  T* slope = slopes.defined() ? slopes.mutable_data_ptr<T>() : nullptr;
  at::parallel_for(0, rows.size(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      if (!rows.is_possible(b)) continue;
      const int64_t first = rows.first_frame(b) * classes;
      const ctc::Sequence<T> sequence{.scores = from + first,
                                      .shares = share + first,
                                      .num_frames = rows.num_frames(b),
                                      .num_classes = classes,
                                      .labels = rows.labels(b),
                                      .blank = targets.blank};
      to[b] = static_cast<T>(ctc::loss_of(sequence, slope == nullptr ? nullptr : slope + first));
    }
  });
}

void fill_losses_of_type(const at::Tensor& scores, const CtcTargets& targets,
                         const at::Tensor& losses, const at::Tensor& slopes) {
  if (scores.scalar_type() == at::kDouble) {
    fill_losses<double>(scores, targets, losses, slopes);
  } else {
    fill_losses<float>(scores, targets, losses, slopes);
  }
}

at::Tensor zeros_for(const at::Tensor& scores, const CtcTargets& targets) {
  return at::zeros({targets.frames.values.size(0) - 1}, scores.options().requires_grad(false));
}

/// Each loss is linear in what comes back, so its slopes are made in forward.
struct CtcNode : torch::autograd::Function<CtcNode> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& scores,
                            const CtcTargets& targets) {
    const at::Tensor losses = zeros_for(scores, targets), slopes = at::zeros_like(scores);
    fill_losses_of_type(scores, targets, losses, slopes);
    const at::Tensor lengths = at::diff(targets.frames.values.to(at::kLong));
    ctx->save_for_backward({slopes, at::repeat_interleave(lengths)});
    return losses;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &slopes = saved[0], &sequence = saved[1];
    return {slopes * grads[0].index_select(0, sequence).unsqueeze(1), {}};
  }
};

void check_ctc(const at::Tensor& scores, const CtcTargets& targets) {
  check_rows(scores, "ctc_loss");
  const at::Tensor& labels = targets.labels;
  TORCH_CHECK(labels.defined() && labels.dim() == 1 && labels.scalar_type() == at::kLong,
              "[kernels] ctc_loss: labels must be a vector of int64");
  check_offsets(targets.frames, scores.size(0), "ctc_loss", "offsets of frames");
  check_offsets(targets.label_offsets, labels.size(0), "ctc_loss", "offsets of labels");
  TORCH_CHECK(targets.frames.values.sizes() == targets.label_offsets.values.sizes(),
              "[kernels] ctc_loss: there are frames of ", targets.frames.values.size(0) - 1,
              " sequences, and labels of ", targets.label_offsets.values.size(0) - 1);
  TORCH_CHECK(targets.blank >= 0 && targets.blank < scores.size(1), "[kernels] ctc_loss: of ",
              scores.size(1), " classes, the blank one cannot be ", targets.blank);
  if (!labels.is_cpu()) return;
  const at::Tensor known =
      labels.ge(0).logical_and(labels.lt(scores.size(1))).logical_and(labels.ne(targets.blank));
  TORCH_CHECK(known.all().item<bool>(), "[kernels] ctc_loss: labels must be classes in [0, ",
              scores.size(1), "), and not the blank one, ", targets.blank);
}

}  // namespace

CtcLosses ctc_loss(const at::Tensor& scores, const CtcTargets& targets) {
  check_ctc(scores, targets);
  const at::Tensor rows = scores.scalar_type() == at::kDouble ? scores.contiguous()
                                                              : scores.to(at::kFloat).contiguous();
  if (!rows.is_cpu()) return reference::ctc_loss(rows, targets);
  const CtcRows sequences(targets);
  const at::Tensor possible = at::empty({sequences.size()}, at::kBool);
  for (int64_t b = 0; b < sequences.size(); ++b) {
    possible.mutable_data_ptr<bool>()[b] = sequences.is_possible(b);
  }
  if (at::GradMode::is_enabled() && rows.requires_grad()) {
    return {.each = CtcNode::apply(rows, targets), .possible = possible};
  }
  const at::Tensor losses = zeros_for(rows, targets);
  fill_losses_of_type(rows, targets, losses, at::Tensor());
  return {.each = losses, .possible = possible};
}

}  // namespace stretto::kernels
