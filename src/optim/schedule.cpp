#include "optim/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include "base/error.h"

namespace stretto::optim {
namespace {

struct Point {
  const ScheduleOptions& options;
  double peak;
  double step;
  double progress;  // of the decay, 0..1
};

double mix(const Point& p, double share) {
  return p.options.min_lr + (p.peak - p.options.min_lr) * share;
}
double constant(const Point& p) {
  return p.peak;
}
double inverse_sqrt(const Point& p) {
  const double warmup = std::max<double>(1.0, static_cast<double>(p.options.warmup_steps));
  return p.peak * std::sqrt(warmup / std::max(1.0, p.step));
}
double linear(const Point& p) {
  return mix(p, 1 - p.progress);
}
double cosine(const Point& p) {
  return mix(p, (1 + std::cos(std::numbers::pi * p.progress)) / 2);
}
double polynomial(const Point& p) {
  return mix(p, std::pow(1 - p.progress, p.options.power));
}

using Shape = double (*)(const Point&);
constexpr std::array<std::pair<std::string_view, Shape>, 5> kSchedules{{
    {"constant", &constant},
    {"inverse_sqrt", &inverse_sqrt},
    {"linear", &linear},
    {"cosine", &cosine},
    {"polynomial", &polynomial},
}};

}  // namespace

double learning_rate(const ScheduleOptions& schedule, double peak, int64_t total_steps,
                     int64_t step) {
  const int64_t warmup = schedule.warmup_steps;
  if (step < warmup) {
    return schedule.warmup_init_lr + (peak - schedule.warmup_init_lr) * static_cast<double>(step) /
                                         static_cast<double>(warmup);
  }
  const double span = static_cast<double>(std::max<int64_t>(1, total_steps - warmup));
  const double progress = std::clamp(static_cast<double>(step - warmup) / span, 0.0, 1.0);
  for (const auto& [name, shape] : kSchedules) {
    if (name == schedule.name) {
      return std::max(schedule.min_lr,
                      shape({schedule, peak, static_cast<double>(step), progress}));
    }
  }
  throw Error(ExitCode::kUsage, "schedule.name: unknown schedule `" + schedule.name + "`");
}

}  // namespace stretto::optim
