#include "cli/family_options.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace stretto::cli {
namespace {

bool is_in(const std::vector<std::string_view>& families, const std::string& family) {
  return std::find(families.begin(), families.end(), family) != families.end();
}

bool is_of(const FamilyOption& option, const std::string& family) {
  return is_in(option.families, family);
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

std::vector<std::string> stated_keys(const CLI::App& app, std::span<const FamilyOption> options,
                                     const std::string& family) {
  std::vector<std::string> keys;
  for (const auto& option : options) {
    if (option.key.empty() || is_in(option.without_key, family)) continue;
    if (app.count(option.option) == 0) continue;
    const auto* given = app.get_option(option.option);
    if (option.key.find('=') == std::string::npos) {
      keys.push_back(option.key + "=" + std::to_string(given->as<int64_t>()));
    } else if (given->as<bool>()) {
      keys.push_back(option.key);
    }
  }
  return keys;
}

}  // namespace stretto::cli
