#include "cli/family_options.h"

#include <algorithm>
#include <utility>

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

// Adds what one family has of the option `declared`.
void add_owner(const experiment::FamilySpec& family,
               const std::vector<experiment::CommandOption>& options, FamilyOption& declared) {
  for (const auto& option : options) {
    if (declared.option != option.name) continue;
    declared.families.emplace_back(family.options.name);
    const std::string key = option.key;
    if (key.empty()) declared.without_key.emplace_back(family.options.name);
    if (!key.empty()) declared.key = key;
  }
}

}  // namespace

std::vector<FamilyOption> family_options(
    const CLI::App& app, std::vector<experiment::CommandOption> experiment::FamilySpec::*of) {
  std::vector<FamilyOption> found;
  for (const CLI::Option* declared : app.get_options()) {
    FamilyOption option{.option = declared->get_name(), .families = {}};
    for (const auto& family : experiment::families()) add_owner(family, family.*of, option);
    if (!option.families.empty()) found.push_back(std::move(option));
  }
  return found;
}

void require_own_options(const CLI::App& app, std::span<const FamilyOption> options,
                         const experiment::Experiment& experiment) {
  const std::string& family = experiment.task.name();
  std::vector<std::string> own;
  for (const auto& option : options) {
    if (is_of(option, family)) own.push_back(option.option);
  }
  for (const auto& option : options) {
    if (is_of(option, family) || app.count(option.option) == 0) continue;
    const std::vector<std::string> families(option.families.begin(), option.families.end());
    throw Error(ExitCode::kUsage,
                option.option + " is an option for runs of " + join(families, ", ") +
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
