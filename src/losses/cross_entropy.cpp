#include "losses/cross_entropy.h"

#include <ATen/ATen.h>

#include <utility>

#include "kernels/loss/smoothing.h"
#include "losses/teacher.h"

namespace stretto::losses {

nn::OutputLoss cross_entropy(const CrossEntropyOptions& options) {
  const double smoothing = options.label_smoothing;
  nn::OutputLoss plain = [smoothing](const at::Tensor& x, const at::Tensor& weight,
                                     const at::Tensor& targets, int64_t num_classes,
                                     const at::Tensor& bias, double softcap) {
    return kernels::linear_cross_entropy(x, weight, targets, smoothing, num_classes, bias, softcap);
  };
  if (options.has_teacher()) {
    plain = with_teacher(std::move(plain), {options.teacher_weight, options.teacher_temperature});
  }
  return recordable(std::move(plain));
}

nn::OutputLoss cross_entropy_of_pairs(const CrossEntropyOptions& options) {
  if (!options.has_r_drop()) return nullptr;
  const double smoothing = options.label_smoothing, alpha = options.r_drop;
  return [smoothing, alpha](const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& targets, int64_t num_classes, const at::Tensor& bias,
                            double softcap) {
    TORCH_CHECK(softcap <= 0, "[r_drop] takes no bent logits");
    const kernels::RDrop r_drop{.smoothing = smoothing, .alpha = alpha, .num_classes = num_classes};
    return kernels::linear_r_drop(x, weight, targets, r_drop, bias);
  };
}

DistributionLoss cross_entropy_of_distributions(const CrossEntropyOptions& options) {
  const double smoothing = options.label_smoothing;
  return [smoothing](const at::Tensor& log_probs, const at::Tensor& targets) {
    const kernels::SmoothingWeights weights(smoothing, log_probs.size(1));
    const at::Tensor token_nll = -log_probs.gather(1, targets.unsqueeze(1)).squeeze(1);
    const at::Tensor nll_sum = token_nll.sum(at::kDouble);
    const at::Tensor all_sum = -log_probs.sum(at::kDouble);
    return kernels::CrossEntropy{weights.extra * nll_sum + weights.each * all_sum, nll_sum,
                                 token_nll.to(at::kDouble)};
  };
}

}  // namespace stretto::losses
