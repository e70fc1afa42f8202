#include "search/changes.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "config/resolved.h"
#include "experiment/experiment_schema.h"
#include "search/space_options.h"

namespace stretto::search {
namespace {

const config::DifferenceWords kWords{.stored = "in the search", .now = "now"};

void compare_recipes(const std::string& stored, const std::string& now,
                     std::vector<std::string>& lines) {
  const auto options_of = [](const std::string& toml) {
    return experiment::load_stored_experiment(toml, "/the configuration of the search", {}).options;
  };
  auto before = options_of(stored), after = options_of(now);
  const auto schema = experiment::experiment_schema(after);
  std::vector<std::string> as_well;  // free for a run, but not between trials
  for (const auto& key : schema.keys) {
    if (key.meta.change == config::Change::kScoring) as_well.push_back(key.path);
  }
  for (auto& line :
       config::differences(experiment::experiment_schema(before), schema, as_well, kWords)) {
    lines.push_back("the configuration's " + std::move(line));
  }
}

bool is_part_of(const Parameter& now, const Parameter& before) {
  if (!before.is_discrete()) return now.min >= before.min && now.max <= before.max;
  return std::all_of(now.values.begin(), now.values.end(),
                     [&](const std::string& value) { return before.contains(value); });
}

void compare_spaces(const Space& stored, const Space& now, std::vector<std::string>& lines) {
  if (stored.parameters.size() != now.parameters.size()) return;  // told as another key
  for (size_t i = 0; i < now.parameters.size(); ++i) {
    const Parameter &before = stored.parameters[i], &after = now.parameters[i];
    if (before.key != after.key || before.kind != after.kind) continue;
    if (!is_part_of(after, before)) {
      lines.push_back(space_key(i, after.is_discrete() ? "values" : "min or max") + ": `" +
                      after.key + "` is wider now; a space may become narrower alone");
    }
  }
}

std::string max_trials_text(const SearchPlan& plan) {
  const int64_t given = plan.options.search.max_trials;
  return given > 0 ? std::to_string(given) : "all of the grid";
}

void compare_budgets(const SearchPlan& stored, const SearchPlan& now,
                     std::vector<std::string>& lines) {
  // As many trials as a grid has points are all of it.
  const bool is_whole = stored.budget() == kAllPoints && now.grid_points > 0 &&
                        static_cast<uint64_t>(now.budget()) >= now.grid_points;
  if (now.budget() < stored.budget() && !is_whole) {
    lines.push_back("search.max_trials: " + max_trials_text(stored) + " in the search, " +
                    max_trials_text(now) + " now; it may be raised alone");
  }
  const auto &before = stored.options.search.points, &after = now.options.search.points;
  const bool goes_on =
      before.size() <= after.size() && std::equal(before.begin(), before.end(), after.begin());
  if (!goes_on) {
    lines.push_back("search.points: others than in the search; more may stand behind those alone");
  }
}

}  // namespace

std::vector<std::string> forbidden_changes(const SearchPlan& stored, const SearchPlan& now) {
  SearchFileOptions before = stored.options, after = now.options;
  auto lines = config::differences(search_schema(before), search_schema(after), {}, kWords);
  compare_budgets(stored, now, lines);
  compare_spaces(stored.space, now.space, lines);
  compare_recipes(stored.recipe, now.recipe, lines);
  if (stored.metric != now.metric || stored.higher_is_better != now.higher_is_better) {
    lines.push_back("trials are ranked by " + stored.metric + " in the search, by " + now.metric +
                    " now");
  }
  return lines;
}

void require_same_recipe(const SearchPlan& stored) {
  const std::string now = recipe_on_disk(stored);
  if (now == stored.recipe) return;
  std::vector<std::string> lines;
  compare_recipes(stored.recipe, now, lines);
  if (lines.empty()) return;
  throw Error(
      ExitCode::kUsage,
      stored.options.search.config + " was changed during the search:\n  " + join(lines, "\n  "),
      "give it the old values, and the same command goes on; or search into another folder");
}

void require_may_go_on(const std::string& directory, const SearchPlan& stored,
                       const SearchPlan& now) {
  const auto lines = forbidden_changes(stored, now);
  if (lines.empty()) return;
  throw Error(ExitCode::kUsage, directory + " holds another search:\n  " + join(lines, "\n  "),
              "search into another folder with --dir, or give the old values");
}

}  // namespace stretto::search
