#pragma once

#include <cstdint>
#include <limits>

#include "optim/optim_options.h"

namespace stretto::optim {

/// What a schedule looks at.
struct ScheduleAt {
  int64_t step = 0;         ///< finished updates; left-out ones do not count
  int64_t total_steps = 0;  ///< where linear, cosine, polynomial and tri_stage end; warmup_ratio's
  int64_t reductions = 0;   ///< of plateau so far, see Plateau
  int64_t width = 0;        ///< of the model, for noam; 0 = it has none
};

/// Learning rate of the update that follows `at.step` finished ones: a pure function.
///
/// With w = warmup_steps, or ceil(total_steps warmup_ratio) if that share is given: while step < w,
/// `gradual`: warmup_init_lr + (peak - warmup_init_lr) step / w; `constant`: warmup_init_lr. Then,
/// with b = max(w, begin_steps) and x = (step - b) / (total_steps - b) held in [0, 1]; those that
/// know b are at the peak until b:
///
///     constant, fixed   peak
///     inverse_sqrt      peak sqrt(max(w, 1) / max(step, 1))  (fairseq; Vaswani 2017, section 5.3)
///     linear            min_lr + (peak - min_lr) (1 - x)
///     cosine            min_lr + (peak - min_lr) (1 + cos(pi x)) / 2
///     polynomial        min_lr + (peak - min_lr) (1 - x)^power
///     step              peak decay_rate^floor((step - b) / decay_steps)
///     exponential       peak decay_rate^((step - b) / decay_steps), floored with staircase
///     piecewise         peak times the multiplier of the last boundary <= step, 1 before the first
///     plateau           peak decay_rate^reductions
///     tri_stage         peak for hold_steps, then peak final_scale^y with y from 0 to 1 until
///                       total_steps
///     cosine_restarts   cosine from peak to min_lr over each period; period i has period_steps
///                       period_growth^i updates and both ends times period_shrink^i (fairseq)
///
/// never below min_lr (but cosine_restarts, whose floor shrinks); a warm-up has no floor. `noam`
/// has its own gradual warm-up (Vaswani 2017, section 5.3): peak width^-0.5 min((step + 1) w^-1.5,
/// (step + 1)^-0.5), at most max_lr if that is not 0; after a constant one it stands on the same
/// curve.
///
/// Throws Error(kUsage) for an unknown name, for piecewise lists of different lengths, and for noam
/// without a width.
double learning_rate(const ScheduleOptions& schedule, double peak, const ScheduleAt& at);

inline double learning_rate(const ScheduleOptions& schedule, double peak, int64_t total_steps,
                            int64_t step) {
  return learning_rate(schedule, peak, {.step = step, .total_steps = total_steps});
}

/// Counts the reductions of the schedule `plateau` from validation losses: one more whenever more
/// than `patience` validations in a row brought no loss below best - threshold |best|. A value,
/// kept in checkpoints as its three numbers.
struct Plateau {
  double best = std::numeric_limits<double>::infinity();
  int64_t without_progress = 0;
  int64_t reductions = 0;
};

/// `plateau` after one more validation; a loss that is not a number is no progress.
Plateau after_validation(const ScheduleOptions& schedule, Plateau plateau, double loss);

}  // namespace stretto::optim
