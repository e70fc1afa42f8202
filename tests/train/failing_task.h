#pragma once

#include <functional>
#include <limits>
#include <map>

#include "tests/train/toy_task.h"

namespace stretto::train::test {

/// The toy task with updates that fail as asked. Steps count as in metrics.jsonl, from 1.
class FailingTask : public ToyTask {
 public:
  Sums loss(const Prepared& batch, const StepContext& context) override {
    step_ = context.update + 1;
    Sums result = ToyTask::loss(batch, context);
    torch::Tensor& loss = result.losses.front();
    if (nans[step_]-- > 0) loss = loss * std::numeric_limits<float>::quiet_NaN();
    // Half precision in small: the gradient overflows when the loss scale is above a limit.
    const double limit = largest_scale(step_);
    loss = loss * 1.0;
    loss.register_hook([limit](const at::Tensor& grad) {
      return grad.item<double>() > limit ? grad * std::numeric_limits<float>::infinity() : grad;
    });
    return result;
  }
  Validation validate() override { return toy_validation(nll_at(step_)); }

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
