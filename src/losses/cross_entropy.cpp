#include "losses/cross_entropy.h"

namespace stretto::losses {

nn::OutputLoss cross_entropy(const CrossEntropyOptions& options) {
  const double smoothing = options.label_smoothing;
  return [smoothing](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                     int64_t num_classes) {
    return kernels::linear_cross_entropy(x, weight, targets, smoothing, num_classes);
  };
}

}  // namespace stretto::losses
