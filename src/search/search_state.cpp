#include "search/search_state.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "search/changes.h"
#include "search/path_values.h"

namespace stretto::search {
namespace {

constexpr int64_t kVersion = 1;
constexpr int64_t kMostSteps = 1'000'000'000'000;

JournalEntry json_of(const Point& point) {
  JournalEntry values = JournalEntry::array();
  for (const auto& value : point) {
    if (value) {
      values.push_back(*value);
    } else {
      values.push_back(nullptr);
    }
  }
  return values;
}

Point point_of(const JournalEntry& values) {
  Point point;
  for (const auto& value : values) {
    point.push_back(value.is_null() ? std::nullopt : std::optional(value.get<std::string>()));
  }
  return point;
}

JournalEntry json_of(const RefusedPoints& refused) {
  return {{"looked_at", refused.looked_at},
          {"count", refused.count},
          {"first", refused.first},
          {"why", refused.why}};
}

RefusedPoints refused_points_of(const JournalEntry& json, uint64_t grid_points) {
  RefusedPoints refused{.looked_at = json.at("looked_at").get<uint64_t>(),
                        .count = json.at("count").get<uint64_t>(),
                        .first = json.at("first").get<std::string>(),
                        .why = json.at("why").get<std::string>()};
  if (refused.count > refused.looked_at || refused.looked_at > grid_points) {
    throw std::runtime_error("the grid has no such number of points");
  }
  return refused;
}

SearchPlan plan_of(const JournalEntry& entry, const std::string& where) {
  SearchPlan plan = stored_plan(entry.at("search").get<std::string>(), where);
  plan.recipe = entry.at("recipe").get<std::string>();
  plan.metric = entry.at("metric").get<std::string>();
  plan.higher_is_better = entry.at("higher_is_better").get<bool>();
  plan.max_steps = entry.at("max_steps").get<int64_t>();
  if (plan.max_steps < 1 || plan.max_steps > kMostSteps) {
    throw std::runtime_error("a trial has no such number of updates");
  }
  // Earlier releases kept nothing of refused points.
  if (entry.contains("refused")) {
    plan.refused = refused_points_of(entry.at("refused"), plan.grid_points);
  }
  return plan;
}

[[noreturn]] void refuse(const std::string& where, size_t line, const std::string& what) {
  throw Error(ExitCode::kBadData, where + ":" + std::to_string(line) + ": " + what,
              "another version of Stretto may have written it: go on with that one, or search "
              "into another folder");
}

}  // namespace

const char* name_of(TrialState state) {
  switch (state) {
    case TrialState::kRunning:
      return "running";
    case TrialState::kWaiting:
      return "waiting";
    case TrialState::kStopped:
      return "stopped";
    case TrialState::kFinished:
      return "finished";
    case TrialState::kFailed:
      return "failed";
  }
  return "";
}

SearchState::SearchState(SearchPlan plan)
    : plan_(std::move(plan)),
      scheduler_(make_scheduler(plan_.options.method, plan_.budget(), plan_.max_steps)) {}

SearchState SearchState::replay(const std::vector<JournalEntry>& entries,
                                const std::string& where) {
  size_t line = 1;
  if (entries.empty()) {
    throw Error(ExitCode::kBadData, where + ": is empty",
                "put it back from a copy; without trials, the command of the search begins anew");
  }
  try {
    const auto& first = entries.at(0);
    if (first.at("event") != "begin") refuse(where, line, "a journal begins with its search");
    if (first.at("version") != kVersion) refuse(where, line, "it is of another version");
    SearchState state(plan_of(first, where));
    for (line = 2; line <= entries.size(); ++line) state.apply(entries[line - 1]);
    return state;
  } catch (const Error& error) {
    if (error.code() == ExitCode::kBadData) throw;
    refuse(where, line, error.what());
  } catch (const std::exception& error) {
    refuse(where, line, std::string("does not follow from the lines before it: ") + error.what());
  }
}

JournalEntry SearchState::entry_of(const SearchPlan& plan, const char* event) {
  JournalEntry entry{{"event", event},
                     {"version", kVersion},
                     {"metric", plan.metric},
                     {"higher_is_better", plan.higher_is_better},
                     {"max_steps", plan.max_steps},
                     {"search", plan.toml},
                     {"recipe", plan.recipe}};
  if (plan.refused.looked_at > 0) entry["refused"] = json_of(plan.refused);
  return entry;
}

void SearchState::apply(const JournalEntry& entry) {
  const auto event = entry.at("event").get<std::string>();
  if (event == "run") return take_run(entry);
  if (event == "change") {
    change(plan_of(entry, "journal"));
    return;
  }
  const Job job{.trial = entry.at("trial").get<TrialId>(),
                .until = entry.at("until").get<int64_t>()};
  if (event == "failure") {
    fail(job, entry.at("code").get<int>(), entry.at("why").get<std::string>());
  } else if (event == "result") {
    Report done{.until = job.until,
                .step = entry.at("step").get<int64_t>(),
                .seconds = entry.at("seconds").get<double>()};
    if (done.step < 0 || done.step > kMostSteps) {
      throw std::runtime_error("a training makes no such number of updates");
    }
    if (!entry.at("value").is_null()) done.value = entry.at("value").get<double>();
    report(job, done, entry.at("clock").get<double>());
  } else {
    throw std::runtime_error("unknown event " + event);
  }
}

void SearchState::take_run(const JournalEntry& entry) {
  const auto trial = entry.at("trial").get<TrialId>();
  std::optional<Sampler::Choice> choice;
  if (entry.contains("point")) {
    choice = Sampler::Choice{.point = point_of(entry.at("point")),
                             .num_enqueued = entry.at("enqueued").get<size_t>()};
    if (choice->point.size() != plan_.space.parameters.size()) {
      throw std::runtime_error("the point has other hyperparameters");
    }
  }
  const auto begun = next(choice);
  if (!begun || begun->job.trial != trial || begun->job.until != entry.at("until").get<int64_t>()) {
    throw std::runtime_error("the scheduler decides otherwise");
  }
}

std::optional<SearchState::BegunJob> SearchState::next(
    const std::optional<Sampler::Choice>& choice) {
  const auto job = scheduler_->next(choice.has_value());
  if (!job) return std::nullopt;
  JournalEntry entry{{"event", "run"}, {"trial", job->trial}, {"until", job->until}};
  if (job->begins) {
    trials_.push_back({.id = job->trial, .point = choice->point});
    num_enqueued_ = choice->num_enqueued;
    entry["point"] = json_of(choice->point);
    entry["enqueued"] = num_enqueued_;
  }
  running_.push_back(*job);
  return BegunJob{*job, std::move(entry)};
}

void SearchState::forget(const Job& job) {
  const auto found = std::find_if(running_.begin(), running_.end(), [&](const Job& one) {
    return one.trial == job.trial && one.until == job.until;
  });
  if (found == running_.end()) throw std::runtime_error("no such training was begun");
  running_.erase(found);
}

JournalEntry SearchState::fail(const Job& job, int exit_code, const std::string& why) {
  Trial& trial = trials_.at(static_cast<size_t>(job.trial));
  ++trial.failures;
  trial.exit_code = exit_code;
  trial.failed_until = job.until;
  trial.why = why;
  return {{"event", "failure"},
          {"trial", job.trial},
          {"until", job.until},
          {"code", exit_code},
          {"why", why}};
}

JournalEntry SearchState::report(const Job& job, const Report& report, double clock) {
  forget(job);
  clock_ = clock;
  trials_.at(static_cast<size_t>(job.trial)).reports.push_back(report);
  scheduler_->report(
      {.trial = job.trial, .until = job.until, .score = plan_.score_of(report.value)});
  JournalEntry entry{{"event", "result"},   {"trial", job.trial}, {"until", job.until},
                     {"step", report.step}, {"value", nullptr},   {"seconds", report.seconds},
                     {"clock", clock}};
  if (report.value) entry["value"] = *report.value;
  return entry;
}

JournalEntry SearchState::change(SearchPlan plan) {
  if (plan.budget() > plan_.budget()) scheduler_->raise_budget(plan.budget());
  plan_ = std::move(plan);
  return entry_of(plan_, "change");
}

void SearchState::make_values_absolute(const std::filesystem::path& folder) {
  plan_ = with_absolute_values(plan_, folder);
  const auto& parameters = plan_.space.parameters;
  for (auto& trial : trials_) {
    for (size_t i = 0; i < std::min(trial.point.size(), parameters.size()); ++i) {
      auto& value = trial.point[i];
      if (!value || parameters[i].has_order()) continue;
      value = absolute_value(parameters[i].key, *value, folder);
    }
  }
}

std::set<std::string> SearchState::known_points() const {
  std::set<std::string> known;
  for (const auto& trial : trials_) known.insert(plan_.space.text(trial.point));
  return known;
}

TrialState SearchState::state_of(TrialId id) const {
  const auto is_running = [&](const Job& job) { return job.trial == id; };
  if (std::any_of(running_.begin(), running_.end(), is_running)) return TrialState::kRunning;
  if (!has_score(id)) return TrialState::kFailed;
  const Trial& trial = this->trial(id);
  if (trial.reports.back().until >= plan_.max_steps) return TrialState::kFinished;
  return scheduler_->is_over(id) ? TrialState::kStopped : TrialState::kWaiting;
}

bool SearchState::is_better(TrialId a, TrialId b) const {
  const auto standing = [&](TrialId id) {
    const Trial& trial = this->trial(id);
    const auto score = plan_.score_of(trial.value());
    return std::pair(score ? trial.reports.back().until : 0,
                     Competitor{.trial = id, .score = score});
  };
  const auto one = standing(a), other = standing(b);
  if (one.first != other.first) return one.first > other.first;
  return ranks_before(one.second, other.second);
}

std::optional<TrialId> SearchState::best() const {
  std::optional<TrialId> best;
  for (const auto& trial : trials_) {
    if (!has_score(trial.id)) continue;
    if (!best || is_better(trial.id, *best)) best = trial.id;
  }
  return best;
}

}  // namespace stretto::search
