#pragma once

#include "report/display.h"
#include "report/metrics_log.h"
#include "train/shown_numbers.h"
#include "train/task.h"

namespace stretto::tasks {

/// How large an event says that an update of this batch is, in the unit of its loss; -1 if it does
/// not. Header of tests alone.
inline double size_in_events(train::Task& task, const data::Batch& batch,
                             const report::LossUnit& unit) {
  report::MetricsEvent event;
  event.counts = train::named_counts(task.counters(), task.loss(task.prepare(batch), {}).counts);
  return event.number(unit.count).value_or(-1);
}

}  // namespace stretto::tasks
