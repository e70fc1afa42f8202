#include "search/load_search.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "config/key_check.h"
#include "config/load.h"
#include "experiment/rules.h"
#include "experiment/task_rules.h"
#include "search/build_space.h"
#include "search/path_values.h"
#include "search/space_check.h"

namespace stretto::search {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kValid = "valid.";

// The score that trials are ranked by, among those that validations of the configuration have.
void choose_metric(SearchPlan& plan, const experiment::Experiment& recipe,
                   config::KeyCheck& check) {
  const auto& options = plan.options.search;
  const experiment::TaskRules* task = experiment::find_task_rules(recipe);
  std::string wanted = options.metric.empty() ? recipe.eval.best_metric : options.metric;
  if (wanted.starts_with(kValid)) wanted = wanted.substr(kValid.size());
  std::vector<std::string> names;
  for (const auto& score : experiment::ranking_scores(task->scores(recipe))) {
    names.push_back(score.name());
    const auto& other = score.also_called;
    if (score.name() != wanted && std::find(other.begin(), other.end(), wanted) == other.end()) {
      continue;
    }
    plan.metric = score.name();
    plan.higher_is_better = score.higher_is_better();
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

void check_recipe(SearchPlan& plan, const experiment::Experiment& recipe, config::KeyCheck& check) {
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

void check_slots(const SearchOptions& options, config::KeyCheck& check) {
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

// A host without room for a trial is useless; at least one must have room.
std::vector<Host> load_hosts(const SearchOptions& options, config::KeyCheck& check) {
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

// The file that states a key stands at the front of the key's place. For a key that is not given,
// it is the folder of the search file itself.
FolderOf folders_of_files(const fs::path& path, const config::Origins& origins) {
  return [=, &origins](const std::string& key) {
    const config::Place behind_file{.file = "", .order = origins.order_of(key)};
    const std::string place = origins.of(key), rest = behind_file.text() + ": `" + key + "`";
    const bool has_file = place.ends_with(rest);
    return has_file ? fs::path(place.substr(0, place.size() - rest.size())).parent_path()
                    : path.parent_path();
  };
}

}  // namespace

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
    config::KeyCheck check(loaded.origins, problems);
    check_slots(search, check);
    loaded.hosts = load_hosts(search, check);
    plan.space = build_space(plan.options, loaded.origins, use, problems);
    plan.enqueued = build_points(search, plan.space, loaded.origins, use, problems);
  }
  config::throw_problems(problems);
  complete(plan);
  const auto recipe = load_recipe(search);
  config::KeyCheck check(loaded.origins, problems);
  check_recipe(plan, recipe.options, check);
  choose_metric(plan, recipe.options, check);
  check_space(plan, loaded.origins, problems);
  config::throw_problems(problems);
  require_sound_point(plan);
  if (plan.grid_points > 0) plan.refused = refused_of_grid(plan);
  plan.toml = search_toml(plan.options);
  plan.recipe = recipe.resolved_toml;
  return loaded;
}

}  // namespace stretto::search
