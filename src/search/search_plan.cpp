#include "search/search_plan.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "config/load.h"
#include "config/resolved.h"
#include "config/toml_file.h"
#include "experiment/experiment_schema.h"
#include "experiment/task_rules.h"
#include "interchange/initial_model.h"
#include "search/build_space.h"
#include "search/path_values.h"

namespace stretto::search {
namespace {

namespace fs = std::filesystem;

// "40 points", "more than 1,000,000 points"
std::string points_text(uint64_t points) {
  const bool more = points > SearchPlan::kMostCounted;
  return (more ? "more than " : "") +
         counted(static_cast<int64_t>(more ? SearchPlan::kMostCounted : points), "point");
}

experiment::ReadContext read_context_of_trials() {
  return {.describe = &interchange::describe_initial_model};
}

// The configuration that trials train, or blocks `[[space]]`: no configuration has them.
bool has_search_keys(const config::TomlFile& file) {
  return file.table["search"]["config"] || file.table["space"].is_array_of_tables();
}

// A section of search files, sound or not.
bool has_search_section(const config::TomlFile& file) {
  return file.table.contains("search") || file.table.contains("method") ||
         file.table.contains("space");
}

bool has_section_of(const config::Schema& schema, const config::TomlFile& file) {
  return std::any_of(file.table.begin(), file.table.end(), [&](const auto& entry) {
    return entry.second.is_table() && schema.find_section(std::string(entry.first.str()));
  });
}

}  // namespace

void RefusedPoints::add(const std::string& point, const std::string& reason) {
  if (count++ > 0) return;
  first = printable(point, 4000);
  why = printable(reason, 4000);
}

std::string RefusedPoints::text() const {
  if (count == 0) return "";
  return with_thousands(static_cast<int64_t>(count)) +
         (count == 1 ? " is refused, `" : " are refused, the first is `") + first + "`: " + why;
}

Sampler SearchPlan::sampler() const {
  return {.space = space,
          .seed = static_cast<uint64_t>(options.search.seed),
          .grid = options.method.is<GridOptions>(),
          .enqueued = enqueued};
}

int64_t SearchPlan::budget() const {
  return options.search.max_trials > 0 ? options.search.max_trials : kAllPoints;
}

std::string SearchPlan::grid_text() const {
  return points_text(grid_points);
}

uint64_t SearchPlan::points_left() const {
  return refused.looked_at == grid_points ? grid_points - refused.count : grid_points;
}

std::string SearchPlan::budget_text() const {
  return budget() == kAllPoints ? points_text(points_left()) : counted(budget(), "trial");
}

std::string SearchPlan::refused_text() const {
  if (refused.count == 0) return "";
  if (refused.looked_at < grid_points) {
    return "space: of the first " + counted(static_cast<int64_t>(refused.looked_at), "point") +
           " of the grid, " + refused.text();
  }
  return "space: " + with_thousands(static_cast<int64_t>(points_left())) + " of " + grid_text() +
         " of the grid can be tried; " + refused.text();
}

std::string SearchPlan::cut_text() const {
  const uint64_t left = points_left();
  if (left <= static_cast<uint64_t>(budget())) return "";
  return "search.max_trials: the grid has " + points_text(left) +
         (left < grid_points ? " that can be tried" : "") + ", of which " +
         with_thousands(budget()) + (budget() == 1 ? " is" : " are") + " tried";
}

std::optional<double> SearchPlan::score_of(std::optional<double> value) const {
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return higher_is_better ? -*value : *value;
}

std::vector<config::Problem> problems_as_configuration(const fs::path& path) {
  std::vector<config::Problem> unread;  // whoever loads the file reports them
  const auto files = config::read_toml_file(path, unread);
  if (std::none_of(files.begin(), files.end(), has_search_keys)) return {};
  return {{.place = path.string(),
           .what = "is a search file, and no configuration of one run",
           .hint = "start the search: stretto search " + path.string() + " --dir DIR",
           .key = ""}};
}

std::vector<config::Problem> problems_as_search_file(const fs::path& path) {
  std::vector<config::Problem> unread;
  const auto files = config::read_toml_file(path, unread);
  experiment::Experiment defaults;
  const auto schema = experiment::experiment_schema(defaults);
  const auto is_of_run = [&](const auto& file) { return has_section_of(schema, file); };
  if (std::any_of(files.begin(), files.end(), has_search_section) ||
      std::none_of(files.begin(), files.end(), is_of_run)) {
    return {};
  }
  return {{.place = path.string(),
           .what = "is a configuration of one run, and no search file",
           .hint = "name it as search.config in a file of its own; `stretto search describe "
                   "search` lists the keys",
           .key = ""}};
}

std::string with_own_command(std::string text) {
  constexpr std::string_view kGeneral = "stretto describe", kOwn = "stretto search describe";
  for (size_t at = 0; (at = text.find(kGeneral, at)) != std::string::npos; at += kOwn.size()) {
    text.replace(at, kGeneral.size(), kOwn);
  }
  return text;
}

config::Schema search_schema(SearchFileOptions& options) {
  return config::schema_of(options);
}

std::string search_toml(const SearchFileOptions& options) {
  SearchFileOptions copy = options;
  return config::to_toml(search_schema(copy));
}

void complete(SearchPlan& plan) {
  auto& search = plan.options.search;
  if (plan.options.method.is<GridOptions>()) {
    plan.grid_points = Grid(plan.space).size(SearchPlan::kMostCounted);
  } else if (search.max_trials == 0) {
    search.max_trials = kTrialsByDefault;
  }
}

// A problem of the configuration is reported as the command line would, and its overrides are here.
experiment::LoadedExperiment load_recipe(const SearchOptions& options) {
  try {
    return experiment::load_experiment(options.config, options.overrides, read_context_of_trials());
  } catch (const Error& error) {
    const std::string problems = error.what();
    const bool is_override = problems.find("command line, `") != std::string::npos;
    if (!is_override || !error.advice().empty()) throw;
    throw Error(error.code(), problems, "what is called command line here is search.overrides");
  }
}

std::string recipe_on_disk(const SearchPlan& plan) {
  return load_recipe(plan.options.search).resolved_toml;
}

std::vector<std::string> overrides_of(const SearchPlan& plan, const Point& point) {
  auto words = plan.options.search.overrides;
  for (auto& word : plan.space.overrides(point)) words.push_back(std::move(word));
  return words;
}

experiment::LoadedExperiment experiment_of(const SearchPlan& plan, const Point& point) {
  return experiment::load_experiment(plan.options.search.config, overrides_of(plan, point),
                                     read_context_of_trials());
}

SearchPlan stored_plan(const std::string& toml, const std::string& where) {
  SearchPlan plan;
  SearchFileOptions fallback;
  std::vector<config::Problem> problems;
  const auto origins = config::load_text(toml, where, "/", {}, search_schema(plan.options),
                                         search_schema(fallback), problems);
  // It was checked when the journal was written, with what had been tried until then.
  const SpaceUse use{.begins = false, .used_points = plan.options.search.points.size()};
  plan.space = build_space(plan.options, origins, use, problems);
  plan.enqueued = build_points(plan.options.search, plan.space, origins, use, problems);
  config::throw_problems(problems, ExitCode::kBadData);
  complete(plan);
  plan.toml = toml;
  return plan;
}

SearchPlan with_absolute_values(const SearchPlan& stored, const fs::path& folder) {
  SearchFileOptions options = stored.options;
  make_values_absolute(options, [&](const std::string&) { return folder; });
  const std::string toml = search_toml(options);
  if (toml == search_toml(stored.options)) return stored;
  SearchPlan plan = stored_plan(toml, "the search");
  plan.recipe = stored.recipe;
  plan.metric = stored.metric;
  plan.higher_is_better = stored.higher_is_better;
  plan.max_steps = stored.max_steps;
  plan.refused = stored.refused;
  return plan;
}

}  // namespace stretto::search
