#include "experiment/scaled_rate.h"

#include <algorithm>
#include <cmath>

#include "experiment/schedule_length.h"

namespace stretto::experiment {

// Without the product, which may be too large for its type. Values out of range come here too:
// rules are checked together.
BatchBound token_bound(int64_t max_tokens, int64_t max_samples, int64_t longest) {
  longest = std::max<int64_t>(1, longest);
  const bool by_samples =
      max_samples > 0 && max_tokens > 0 && max_samples <= (max_tokens - 1) / longest;
  return {.key = "data.max_tokens",
          .value = by_samples ? max_samples * longest : max_tokens,
          .unit = "tokens"};
}

ScaledRate::ScaledRate(const Experiment& options) : ScaledRate(options, find_task_rules(options)) {}

ScaledRate::ScaledRate(const Experiment& options, const TaskRules* task)
    : e(options),
      micro_batch(task != nullptr ? task->micro_batch(options) : BatchBound{}),
      width(task != nullptr ? task->model_width(options) : ModelWidth{}),
      batch(static_cast<double>(micro_batch.value) *
            static_cast<double>(options.train.update_freq)),
      reference(batch > 0 ? static_cast<double>(options.optim.reference_batch) : 0),
      scaling(reference > 0 ? options.optim.lr_scaling : "none"),
      peak_lr(reference > 0 ? optim::peak_learning_rate(options.optim, batch) : options.optim.lr) {
  if (scaling != "none") ratio = batch / reference;
}

double ScaledRate::rate_after_warmup() const {
  if (rate_is_peak()) return peak_lr;
  const auto& s = e.schedule;
  const int64_t warmup = s.warmup_updates(schedule_length(e));
  const double rate =
      peak_lr / std::sqrt(static_cast<double>(width.value) * static_cast<double>(warmup + 1));
  return s.max_lr > 0 ? std::min(rate, s.max_lr) : rate;
}

}  // namespace stretto::experiment
