#pragma once

#include <cstdint>

#include "optim/optim_options.h"

namespace stretto::optim {

/// Learning rate of the update that follows `step` finished ones: a pure function.
///
/// While step < warmup_steps: warmup_init_lr + (peak - warmup_init_lr) step / warmup_steps. Then,
/// with w = warmup_steps and x = (step - w) / (total_steps - w) held in [0, 1]:
///
///     constant       peak
///     inverse_sqrt   peak sqrt(max(w, 1) / max(step, 1))     (fairseq; Vaswani 2017, section 5.3)
///     linear         min_lr + (peak - min_lr) (1 - x)
///     cosine         min_lr + (peak - min_lr) (1 + cos(pi x)) / 2
///     polynomial     min_lr + (peak - min_lr) (1 - x)^power
///
/// never below min_lr after the warm-up. `total_steps` is where the last three end.
double learning_rate(const ScheduleOptions& schedule, double peak, int64_t total_steps,
                     int64_t step);

}  // namespace stretto::optim
