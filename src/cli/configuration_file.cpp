#include "cli/configuration_file.h"

#include "base/error.h"
#include "interchange/initial_model.h"
#include "search/search_plan.h"
#include "sweep/load_grid.h"

namespace stretto::cli {

std::vector<config::Problem> problems_as_configuration(const std::filesystem::path& path) {
  for (const auto problems_of_kind :
       {&search::problems_as_configuration, &sweep::problems_as_configuration}) {
    if (auto problems = problems_of_kind(path); !problems.empty()) return problems;
  }
  return {};
}

experiment::LoadedExperiment load_configuration(const std::filesystem::path& path,
                                                const std::vector<std::string>& overrides,
                                                const std::filesystem::path& run_directory) {
  try {
    return experiment::load_experiment(
        path, overrides,
        {.run_directory = run_directory, .describe = &interchange::describe_initial_model});
  } catch (const Error&) {
    config::throw_problems(problems_as_configuration(path));
    throw;
  }
}

}  // namespace stretto::cli
