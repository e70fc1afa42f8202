#include "search/trial_results.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "report/metrics_log.h"

namespace stretto::search {
namespace {

namespace fs = std::filesystem;

using Events = std::vector<report::MetricsEvent>;

bool is_validation(const report::MetricsEvent& event) {
  return event.event == "valid";
}

// Each step that was left out has a line of its own.
int64_t updates_at(const Events& events, int64_t step) {
  return step - std::ranges::count_if(events, [&](const auto& event) {
           return event.step <= step && event.skipped.value_or(false);
         });
}

}  // namespace

bool is_final(int exit_code) {
  for (const ExitCode one : {ExitCode::kOk, ExitCode::kUsage, ExitCode::kBadData,
                             ExitCode::kNumeric, ExitCode::kUnsafe}) {
    if (exit_code == static_cast<int>(one)) return true;
  }
  return false;
}

std::optional<ReportedValue> value_at(const fs::path& run_directory, const std::string& metric,
                                      int64_t until) {
  const auto events = report::metrics_of_run(run_directory);
  if (events.empty()) return std::nullopt;
  const int64_t made = updates_at(events, events.back().step);
  auto found = std::find_if(events.rbegin(), events.rend(), [&](const auto& event) {
    return is_validation(event) && updates_at(events, event.step) == until;
  });
  // Where a run has not ended before, a line is missing.
  if (found == events.rend() && made <= until && events.back().event == "end") {
    found = std::find_if(events.rbegin(), events.rend(), is_validation);
  }
  if (found == events.rend()) return std::nullopt;
  auto value = found->number(metric);
  if (value && !std::isfinite(*value)) value = std::nullopt;
  return ReportedValue{.updates = updates_at(events, found->step),
                       .value = value,
                       .seconds = found->seconds.value_or(0),
                       .made = made};
}

RunProgress run_progress(const fs::path& run_directory) {
  const auto events = report::metrics_of_run(run_directory);
  if (events.empty()) return {};
  return {.updates = updates_at(events, events.back().step),
          .seconds = events.back().seconds.value_or(0)};
}

std::vector<report::Point> validations_of(const fs::path& run_directory,
                                          const std::string& metric) {
  std::vector<report::Point> points;
  try {
    for (const auto& event : report::metrics_of_run(run_directory)) {
      const auto value = is_validation(event) ? event.number(metric) : std::nullopt;
      if (value && event.step > 0) points.push_back({static_cast<double>(event.step), *value});
    }
  } catch (const Error&) {
    // The page lacks a curve; the result itself is read elsewhere, and an error is reported there.
  }
  return points;
}

}  // namespace stretto::search
