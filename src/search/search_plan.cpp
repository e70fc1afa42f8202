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
#include "search/space_check.h"

namespace stretto::search {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kValid = "valid.";

/// Notes what is wrong with a key of `[search]`.
class FileCheck {
 public:
  FileCheck(const config::Origins& origins, std::vector<config::Problem>& problems)
      : origins_(origins), problems_(problems) {}

  void wrong(const std::string& key, const std::string& what, const std::string& hint) {
    if (config::is_unreliable(problems_, key)) return;
    problems_.push_back({origins_.of(key), what, hint, key, origins_.order_of(key)});
  }

 private:
  const config::Origins& origins_;
  std::vector<config::Problem>& problems_;
};

// The score that trials are ranked by, among those that validations of the configuration have.
void choose_metric(SearchPlan& plan, const experiment::Experiment& recipe, FileCheck& check) {
  const auto& options = plan.options.search;
  const experiment::TaskRules* task = experiment::find_task_rules(recipe);
  std::string wanted = options.metric.empty() ? recipe.eval.best_metric : options.metric;
  if (wanted.starts_with(kValid)) wanted = wanted.substr(kValid.size());
  std::vector<std::string> names;
  for (const auto& score : task->scores(recipe)) {
    names.push_back(score.name);
    const auto& other = score.also_called;
    if (score.name != wanted && std::find(other.begin(), other.end(), wanted) == other.end()) {
      continue;
    }
    plan.metric = score.name;
    plan.higher_is_better = score.higher_is_better;
  }
  if (plan.metric.empty()) {
    const std::string near = closest(wanted, names);
    check.wrong(
        "search.metric",
        "a validation has no score `" + printable(wanted) + "`; it has " + join(names, ", "),
        near.empty() ? "name one of them" : "did you mean `" + near + "`?");
  }
  if (options.goal != "auto") plan.higher_is_better = options.goal == "maximize";
}

void check_recipe(SearchPlan& plan, const experiment::Experiment& recipe, FileCheck& check) {
  plan.max_steps = recipe.train.max_steps;
  if (plan.max_steps <= 0) {
    const auto epochs = static_cast<int64_t>(recipe.train.max_epochs);
    const std::string found =
        epochs > 0 ? "; it has train.max_epochs = " + std::to_string(epochs) : "";
    check.wrong("search.config",
                "has no train.max_steps, which is the length of a trial in updates" + found,
                epochs > 0
                    ? "add overrides = [\"train.max_steps=N\"]: the log of a run of this "
                      "configuration says in its line `schedule` how many updates its epochs are"
                    : "set it there, or overrides = [\"train.max_steps=1000\"]");
  }
  const auto* task = experiment::find_task_rules(recipe);
  if (const auto valid = task->validation_data(recipe); !valid.there) {
    check.wrong("search.config", "has no " + valid.name + ", by which trials are compared",
                valid.remedy);
  }
}

void check_slots(const SearchOptions& options, FileCheck& check) {
  if (options.slots > 0 && options.slots_per_trial > options.slots) {
    check.wrong("search.slots_per_trial",
                "is " + std::to_string(options.slots_per_trial) + ", more than the " +
                    std::to_string(options.slots) + " of search.slots: no trial could begin",
                "take no more than search.slots");
  }
  if (options.slots > 0 && !options.hosts.empty()) {
    check.wrong("search.slots", "is of this machine, but search.hosts names machines",
                "leave it out: the host file has `localhost slots=N`");
  }
  if (!options.hosts.empty() && options.remote_shell.empty()) {
    check.wrong("search.remote_shell", "is empty", "leave it out for ssh");
  }
  if (options.config.empty()) {
    check.wrong("search.config", "is missing", "name the configuration that trials train");
  }
}

// A host without room for a trial is no use; at least one must have some.
std::vector<Host> load_hosts(const SearchOptions& options, FileCheck& check) {
  if (options.hosts.empty()) return {};
  auto hosts = parse_hosts(read_file(options.hosts, kMaxSmallTextBytes), options.hosts);
  const bool any_room = std::any_of(hosts.begin(), hosts.end(), [&](const Host& host) {
    return host.slots >= options.slots_per_trial && std::ssize(host.gpus) >= options.gpus_per_trial;
  });
  if (!any_room) {
    check.wrong("search.hosts",
                "names no host with room for a trial, which takes " +
                    counted(options.slots_per_trial, "slot") + " and " +
                    counted(options.gpus_per_trial, "GPU"),
                "lower search.slots_per_trial or search.gpus_per_trial, or correct the host file");
  }
  return hosts;
}

std::string without_comments(const SearchFileOptions& options) {
  SearchFileOptions copy = options;
  return config::to_toml(search_schema(copy));
}

// What the file leaves out, and what its space comes to.
void complete(SearchPlan& plan) {
  auto& search = plan.options.search;
  if (plan.options.method.is<GridOptions>()) {
    plan.grid_points = Grid(plan.space).size(SearchPlan::kMostCounted);
  } else if (search.max_trials == 0) {
    search.max_trials = kTrialsByDefault;
  }
}

// The file that states a key stands at the front of the key's place. Of a key that is not given the
// folder of the search file itself.
FolderOf folders_of_files(const fs::path& path, const config::Origins& origins) {
  return [=, &origins](const std::string& key) {
    const config::Place behind_file{.file = "", .order = origins.order_of(key)};
    const std::string place = origins.of(key), rest = behind_file.text() + ": `" + key + "`";
    const bool has_file = place.ends_with(rest);
    return has_file ? fs::path(place.substr(0, place.size() - rest.size())).parent_path()
                    : path.parent_path();
  };
}

// "40 points", "more than 1,000,000 points"
std::string points_text(uint64_t points) {
  const bool more = points > SearchPlan::kMostCounted;
  return (more ? "more than " : "") +
         counted(static_cast<int64_t>(more ? SearchPlan::kMostCounted : points), "point");
}

experiment::Beside beside_run(const fs::path& run_directory = {}) {
  return {.run_directory = run_directory, .describe = &interchange::describe_initial_model};
}

// A problem of the configuration is told as the command line would, and its overrides stand here.
experiment::LoadedExperiment load_recipe(const SearchOptions& options) {
  try {
    return experiment::load_experiment(options.config, options.overrides, beside_run());
  } catch (const Error& error) {
    const std::string problems = error.what();
    const bool is_override = problems.find("command line, `") != std::string::npos;
    if (!is_override || !error.advice().empty()) throw;
    throw Error(error.code(), problems, "what is called command line here is search.overrides");
  }
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
  std::vector<config::Problem> unread;  // who loads the file tells them
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

experiment::LoadedExperiment load_configuration(const fs::path& path,
                                                const std::vector<std::string>& overrides,
                                                const fs::path& run_directory) {
  try {
    return experiment::load_experiment(path, overrides, beside_run(run_directory));
  } catch (const Error&) {
    config::throw_problems(problems_as_configuration(path));
    throw;
  }
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
                                     beside_run());
}

LoadedSearch load_search(const fs::path& path, const SpaceUse& use) {
  LoadedSearch loaded;
  SearchPlan& plan = loaded.plan;
  plan.folder = fs::absolute(path).lexically_normal().parent_path();
  SearchFileOptions fallback;
  std::vector<config::Problem> problems;
  loaded.origins =
      config::load_file(path, {}, search_schema(plan.options), search_schema(fallback), problems);
  if (!problems.empty()) config::throw_problems(problems_as_search_file(path));
  for (auto& problem : problems) problem.hint = with_own_command(std::move(problem.hint));
  const auto& search = plan.options.search;
  if (experiment::readable(problems)) {
    make_values_absolute(plan.options, folders_of_files(path, loaded.origins));
    FileCheck check(loaded.origins, problems);
    check_slots(search, check);
    loaded.hosts = load_hosts(search, check);
    plan.space = build_space(plan.options, loaded.origins, use, problems);
    plan.enqueued = build_points(search, plan.space, loaded.origins, use, problems);
  }
  config::throw_problems(problems);
  complete(plan);
  const auto recipe = load_recipe(search);
  FileCheck check(loaded.origins, problems);
  check_recipe(plan, recipe.options, check);
  choose_metric(plan, recipe.options, check);
  check_space(plan, loaded.origins, problems);
  config::throw_problems(problems);
  require_a_point(plan);
  if (plan.grid_points > 0) plan.refused = refused_of_grid(plan);
  plan.toml = without_comments(plan.options);
  plan.recipe = recipe.resolved_toml;
  return loaded;
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
  const std::string toml = without_comments(options);
  if (toml == without_comments(stored.options)) return stored;
  SearchPlan plan = stored_plan(toml, "the search");
  plan.recipe = stored.recipe;
  plan.metric = stored.metric;
  plan.higher_is_better = stored.higher_is_better;
  plan.max_steps = stored.max_steps;
  plan.refused = stored.refused;
  return plan;
}

}  // namespace stretto::search
