#pragma once

#include <functional>
#include <limits>
#include <map>

#include "tests/train/toy_task.h"

namespace stretto::train::test {

/// The toy task with updates that fail as asked. Steps count as in metrics.jsonl, from 1.
class FailingTask : public ToyTask {
 public:
  MicroLoss loss(const data::Batch& batch, const StepContext& context) override {
    step_ = context.update + 1;
    MicroLoss result = ToyTask::loss(batch, context);
    if (nans[step_]-- > 0) {
      result.loss_sum = result.loss_sum * std::numeric_limits<float>::quiet_NaN();
    }
    // Half precision in small: the gradient overflows when the loss scale is above a limit.
    const double limit = largest_scale(step_);
    result.loss_sum = result.loss_sum * 1.0;
    result.loss_sum.register_hook([limit](const at::Tensor& grad) {
      return grad.item<double>() > limit ? grad * std::numeric_limits<float>::infinity() : grad;
    });
    return result;
  }
  ValidationResult validate(bool) override {
    const double nll = nll_at(step_);
    return {.loss = nll, .nll = nll, .target_tokens = 10};
  }

  static constexpr int kAlways = 1'000'000;
  std::map<int64_t, int> nans;  ///< step -> how often its loss is NaN; an examination counts too
  std::function<double(int64_t)> largest_scale = [](int64_t) {
    return std::numeric_limits<double>::infinity();
  };
  std::function<double(int64_t)> nll_at = [](int64_t) { return 1.0; };

 private:
  int64_t step_ = 0;
};

}  // namespace stretto::train::test
