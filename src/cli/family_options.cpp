#include "cli/family_options.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace stretto::cli {
namespace {

bool is_of(const FamilyOption& option, const std::string& family) {
  return std::find(option.families.begin(), option.families.end(), family) != option.families.end();
}

}  // namespace

void require_own_options(const CLI::App& app, std::span<const FamilyOption> options,
                         const experiment::Experiment& experiment) {
  const std::string& family = experiment.task.name();
  std::vector<std::string> own;
  for (const auto& option : options) {
    if (is_of(option, family)) own.emplace_back(option.option);
  }
  for (const auto& option : options) {
    if (is_of(option, family) || app.count(option.option) == 0) continue;
    const std::vector<std::string> families(option.families.begin(), option.families.end());
    throw Error(ExitCode::kUsage,
                std::string(option.option) + " is an option for runs of " + join(families, ", ") +
                    ", and this run's task.name is \"" + family + "\"",
                own.empty() ? "leave it out" : "its own options are " + join(own, ", "));
  }
}

}  // namespace stretto::cli
