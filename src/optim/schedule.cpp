#include "optim/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace stretto::optim {
namespace {

struct Point {
  const ScheduleOptions& options;
  double peak;
  const ScheduleAt& at;
  int64_t warmup;   // updates
  double since;     // updates since the decay began
  double progress;  // of a decay that ends, 0..1
};

double as_double(int64_t value) {
  return static_cast<double>(value);
}
double mix(const Point& p, double share) {
  return p.options.min_lr + (p.peak - p.options.min_lr) * share;
}
double half_cosine(double x) {
  return (1 + std::cos(std::numbers::pi * x)) / 2;
}
double constant(const Point& p) {
  return p.peak;
}
double inverse_sqrt(const Point& p) {
  const double warmup = std::max(1.0, as_double(p.warmup));
  return p.peak * std::sqrt(warmup / std::max(1.0, as_double(p.at.step)));
}
double linear(const Point& p) {
  return mix(p, 1 - p.progress);
}
double cosine(const Point& p) {
  return mix(p, half_cosine(p.progress));
}
double polynomial(const Point& p) {
  return mix(p, std::pow(1 - p.progress, p.options.power));
}
double periods(const Point& p) {
  return p.since / as_double(p.options.decay_steps);
}
double step(const Point& p) {
  return p.peak * std::pow(p.options.decay_rate, std::floor(periods(p)));
}
double exponential(const Point& p) {
  return p.options.staircase ? step(p) : p.peak * std::pow(p.options.decay_rate, periods(p));
}
double plateau(const Point& p) {
  return p.peak * std::pow(p.options.decay_rate, as_double(p.at.reductions));
}

double piecewise(const Point& p) {
  const auto& boundaries = p.options.boundaries;
  if (boundaries.size() != p.options.multipliers.size()) {
    throw Error(ExitCode::kUsage,
                "schedule.multipliers: " +
                    counted(static_cast<int64_t>(p.options.multipliers.size()), "number") +
                    " for " + counted(static_cast<int64_t>(boundaries.size()), "boundary"),
                "give one multiplier for each entry of schedule.boundaries");
  }
  double multiplier = 1;
  for (size_t i = 0; i < boundaries.size() && boundaries[i] <= as_double(p.at.step); ++i) {
    multiplier = p.options.multipliers[i];
  }
  return p.peak * multiplier;
}

double tri_stage(const Point& p) {
  return p.peak * std::pow(p.options.final_scale, p.progress);
}

// Counted period by period: the closed form with logarithms is off by one at some restarts.
double cosine_restarts(const Point& p) {
  const ScheduleOptions& o = p.options;
  double period = as_double(o.period_steps), left = p.since, scale = 1;
  if (o.period_growth == 1) {
    const double done = std::floor(left / period);
    left -= done * period;
    scale = std::pow(o.period_shrink, done);
  } else {
    for (; left >= period; period *= o.period_growth, scale *= o.period_shrink) left -= period;
  }
  return scale * mix(p, half_cosine(left / period));
}

double noam(const Point& p) {
  if (p.at.width < 1) {
    throw Error(ExitCode::kUsage,
                "schedule.name: \"noam\" divides by the root of the model's width, and this model "
                "has none",
                "use \"inverse_sqrt\", whose optim.lr is the highest rate itself");
  }
  const double now = as_double(p.at.step) + 1;
  const double warmup = std::max(1.0, as_double(p.warmup));
  const double rate = p.peak / std::sqrt(as_double(p.at.width)) *
                      std::min(now * std::pow(warmup, -1.5), 1 / std::sqrt(now));
  return p.options.max_lr > 0 ? std::min(rate, p.options.max_lr) : rate;
}

struct Shape {
  std::string_view name;
  double (*rate)(const Point&);
  bool own_warmup = false;  // in place of the gradual one
  bool own_floor = false;
};

constexpr std::array<Shape, 13> kSchedules{{
    {"constant", &constant},
    {"fixed", &constant},
    {"piecewise", &piecewise},
    {"step", &step},
    {"exponential", &exponential},
    {"polynomial", &polynomial},
    {"linear", &linear},
    {"cosine", &cosine},
    {"cosine_restarts", &cosine_restarts, false, true},
    {"inverse_sqrt", &inverse_sqrt},
    {"noam", &noam, true},
    {"tri_stage", &tri_stage},
    {"plateau", &plateau},
}};

const Shape& shape_named(const std::string& name) {
  std::string known;
  for (const auto& shape : kSchedules) {
    if (shape.name == name) return shape;
    known += (known.empty() ? "" : ", ") + std::string(shape.name);
  }
  throw Error(ExitCode::kUsage, "schedule.name: unknown schedule `" + name + "`",
              "known: " + known);
}

double warming_up(const ScheduleOptions& schedule, double peak, int64_t step, int64_t warmup) {
  if (schedule.warmup == "constant") return schedule.warmup_init_lr;
  return schedule.warmup_init_lr +
         (peak - schedule.warmup_init_lr) * as_double(step) / as_double(warmup);
}

}  // namespace

double learning_rate(const ScheduleOptions& schedule, double peak, const ScheduleAt& at) {
  const Shape& shape = shape_named(schedule.name);
  const int64_t warmup = schedule.warmup_updates(at.total_steps);
  const bool warms_up = at.step < warmup;
  if (warms_up && !(shape.own_warmup && schedule.warmup == "gradual")) {
    return warming_up(schedule, peak, at.step, warmup);
  }
  const int64_t begin = schedule.decay_begin(at.total_steps);
  const double since = as_double(std::max<int64_t>(0, at.step - begin));
  const double span = as_double(std::max<int64_t>(1, at.total_steps - begin));
  const double progress = std::clamp(since / span, 0.0, 1.0);
  const double rate = shape.rate({schedule, peak, at, warmup, since, progress});
  return warms_up || shape.own_floor ? rate : std::max(schedule.min_lr, rate);
}

Plateau after_validation(const ScheduleOptions& schedule, Plateau plateau, double loss) {
  const bool first = std::isinf(plateau.best) && std::isfinite(loss);
  if (first || loss < plateau.best - schedule.threshold * std::abs(plateau.best)) {
    plateau.best = loss;
    plateau.without_progress = 0;
    return plateau;
  }
  if (++plateau.without_progress > schedule.patience) {
    plateau.without_progress = 0;
    ++plateau.reductions;
  }
  return plateau;
}

}  // namespace stretto::optim
