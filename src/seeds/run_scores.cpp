#include "seeds/run_scores.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/curves.h"
#include "report/metrics_log.h"

namespace stretto::seeds {
namespace {

using Names = std::vector<std::string>;

// In the order of the file. A score that happens to be whole is among the counts of its line, so
// that its name is known from another one.
Names score_names_of(const std::vector<report::MetricsEvent>& validations, const BestBy& by) {
  Names names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  add("loss");
  for (const auto& event : validations) {
    for (const auto* list : {&event.measures, &event.scores}) {
      for (const auto& number : *list) add(number.name);
    }
  }
  add(by.name);
  return names;
}

ValidationScores scores_of(const report::MetricsEvent& event, const Names& names) {
  ValidationScores found{.step = event.step, .scores = {}};
  for (const auto& name : names) {
    const auto value = event.number(name);
    if (value && std::isfinite(*value)) found.scores.emplace_back(name, *value);
  }
  return found;
}

// The first of several that are equally good, as checkpoints are ranked.
bool is_better(const ValidationScores& one, const std::optional<ValidationScores>& other,
               const BestBy& by) {
  const auto value = one.number(by.name);
  if (!value || one.step == 0) return false;
  if (!other) return true;
  const double before = *other->number(by.name);
  return by.higher_is_better ? *value > before : *value < before;
}

std::string shown(const std::optional<double>& value) {
  return value ? shortest(*value) : "none";
}

std::string change_of(const std::string& name, const std::optional<double>& before,
                      const std::optional<double>& now) {
  if (before == now) return "";
  return name + " is " + shown(now) + ", it was " + shown(before);
}

std::string change_of(const std::string& which, const std::optional<ValidationScores>& before,
                      const std::optional<ValidationScores>& now) {
  if (!before && !now) return "";
  if (!now)
    return "it has no validation, " + which + " was at step " + with_thousands(before->step);
  if (!before) return which + " is at step " + with_thousands(now->step) + ", it had no validation";
  if (before->step != now->step) {
    return which + " is at step " + with_thousands(now->step) + ", it was at step " +
           with_thousands(before->step);
  }
  for (const auto* scores : {&before->scores, &now->scores}) {
    for (const auto& [name, value] : *scores) {
      auto change = change_of(which + " " + name, before->number(name), now->number(name));
      if (!change.empty()) return change;
    }
  }
  return "";
}

}  // namespace

std::string difference_between(const RunScores& before, const RunScores& now) {
  auto change = change_of("the best validation", before.best, now.best);
  if (change.empty()) change = change_of("the last validation", before.last, now.last);
  if (change.empty()) change = change_of("the time in seconds", before.seconds, now.seconds);
  return change;
}

std::optional<double> ValidationScores::number(const std::string& name) const {
  const auto found = std::find_if(scores.begin(), scores.end(),
                                  [&](const auto& score) { return score.first == name; });
  if (found == scores.end()) return std::nullopt;
  return found->second;
}

RunScores read_run_scores(const std::filesystem::path& run_directory, const BestBy& by) {
  RunScores run;
  std::vector<report::MetricsEvent> validations;
  for (auto& event : report::metrics_of_run(run_directory)) {
    if (event.seconds) run.seconds = event.seconds;
    if (event.event == "valid") validations.push_back(std::move(event));
  }
  const Names names = score_names_of(validations, by);
  const int64_t from = report::first_comparable_step(validations);
  for (const auto& event : validations) {
    run.last = scores_of(event, names);
    if (event.step >= from && is_better(*run.last, run.best, by)) run.best = run.last;
  }
  return run;
}

}  // namespace stretto::seeds
