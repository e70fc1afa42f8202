#include "experiment/scaled_rate.h"

#include <algorithm>
#include <cmath>

#include "experiment/schedule_length.h"

namespace stretto::experiment {

ScaledRate::ScaledRate(const Experiment& options)
    : e(options),
      batch_tokens(static_cast<double>(options.data.max_tokens) *
                   static_cast<double>(options.train.update_freq)),
      reference(static_cast<double>(options.optim.reference_batch)),
      scaling(reference > 0 ? options.optim.lr_scaling : "none"),
      peak_lr(optim::peak_learning_rate(options.optim, batch_tokens)) {
  if (scaling != "none") ratio = batch_tokens / reference;
}

double ScaledRate::rate_after_warmup() const {
  if (rate_is_peak()) return peak_lr;
  const auto& s = e.schedule;
  const int64_t warmup = s.warmup_updates(schedule_length(e));
  const double rate =
      peak_lr / std::sqrt(static_cast<double>(s.d_model) * static_cast<double>(warmup + 1));
  return s.max_lr > 0 ? std::min(rate, s.max_lr) : rate;
}

}  // namespace stretto::experiment
