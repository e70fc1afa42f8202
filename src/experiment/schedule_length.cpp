#include "experiment/schedule_length.h"

#include <algorithm>

#include "experiment/task_rules.h"

namespace stretto::experiment {

int64_t schedule_length(const Experiment& options) {
  return options.schedule.length(options.train.max_steps);
}

void resolve_defaults(Experiment& options, const config::Origins& origins) {
  auto& schedule = options.schedule;
  if (schedule.warmup_ratio > 0 && !origins.given("schedule.warmup_steps")) {
    schedule.warmup_steps = 0;
  }
  if (schedule.name == "noam" && !schedule.d_model.given) {
    schedule.d_model.value = model_width(options).value;
  }
  if (!origins.given("train.keep_last")) {
    options.train.keep_last = std::max(options.train.keep_last, options.train.average_last);
  }
  const TaskRules* task = find_task_rules(options);
  if (task != nullptr && !origins.given("eval.best_metric")) {
    options.eval.best_metric = task->scores(options).front().name;
  }
}

}  // namespace stretto::experiment
