#include "search/search_files.h"

#include <charconv>

#include "base/text.h"
#include "report/utf8.h"

namespace stretto::search {
namespace {

using Json = nlohmann::ordered_json;

Json value_json(const Parameter& parameter, const std::string& value) {
  if (!parameter.has_order()) return value;
  int64_t whole = 0;
  const char* const end = value.data() + value.size();
  if (const auto result = std::from_chars(value.data(), end, whole); result.ptr == end) {
    return whole;
  }
  double number = 0;
  const auto result = std::from_chars(value.data(), end, number);
  return result.ptr == end ? Json(number) : Json(value);
}

Json or_null(std::optional<double> value) {
  return value ? Json(*value) : Json(nullptr);
}

Json grid_json(const SearchPlan& plan) {
  const bool is_counted = plan.grid_points <= SearchPlan::kMostCounted;
  Json json{{"points", is_counted ? Json(plan.grid_points) : Json(nullptr)},
            {"looked_at", plan.refused.looked_at},
            {"refused", plan.refused.count}};
  if (plan.refused.count > 0) {
    json["first_refused"] = plan.refused.first;
    json["why"] = plan.refused.why;
  }
  return json;
}

}  // namespace

Json trial_json(const SearchState& state, const Trial& trial) {
  const auto& parameters = state.plan().space.parameters;
  Json point = Json::object();
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (trial.point[i]) point[parameters[i].key] = value_json(parameters[i], *trial.point[i]);
  }
  Json reports = Json::array();
  double seconds = 0;
  for (const auto& report : trial.reports) {
    reports.push_back(Json::array({report.step, or_null(report.value)}));
    seconds = report.seconds;
  }
  const TrialState standing = state.state_of(trial.id);
  const std::string run = "trials/" + std::to_string(trial.id);
  Json json{{"trial", trial.id},
            {"state", name_of(standing)},
            {"point", std::move(point)},
            {"bracket", state.scheduler().bracket_of(trial.id)},
            {"updates", trial.updates()},
            {"value", or_null(trial.value())},
            {"reports", std::move(reports)},
            {"failures", trial.failures},
            {"run", run}};
  if (standing == TrialState::kFailed) {
    json["error"] = trial.why;
    json["log"] = run + "/output.txt";
  }
  json["seconds"] = seconds;
  return json;
}

std::string trials_jsonl(const SearchState& state) {
  std::string text;
  for (const auto& trial : state.trials()) {
    text += trial_json(state, trial).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return text;
}

Json search_json(const SearchState& state) {
  Json trials = Json::array();
  for (const auto& trial : state.trials()) trials.push_back(trial_json(state, trial));
  const auto best = state.best();
  Json json{{"metric", state.plan().metric},
            {"goal", state.plan().higher_is_better ? "maximize" : "minimize"},
            {"updates", state.plan().max_steps},
            {"best", best ? Json(*best) : Json(nullptr)}};
  if (state.plan().grid_points > 0) json["grid"] = grid_json(state.plan());
  json["trials"] = std::move(trials);
  return json;
}

std::string best_toml(const SearchState& state, TrialId best, const std::string& shown) {
  const Trial& trial = state.trial(best);
  const auto loaded = experiment_of(state.plan(), trial.point);
  return "# The best of " + counted(std::ssize(state.trials()), "trial") + " of " +
         printable(shown) + ": trial " + std::to_string(best) + ", " +
         value_text(state.plan(), trial.value()) + " after " + counted(trial.updates(), "update") +
         ".\n# " + printable(state.plan().space.text(trial.point), 4000) + "\n\n" +
         loaded.resolved_toml;
}

std::string padded(const std::string& text, size_t columns) {
  const size_t length = report::count_code_points(text);
  return text + std::string(length < columns ? columns - length : 1, ' ');
}

std::string value_text(const SearchPlan& plan, std::optional<double> value) {
  return plan.metric + " " + (value ? fixed(*value, 4) : "none");
}

}  // namespace stretto::search
