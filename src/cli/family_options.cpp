#include "cli/family_options.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/text.h"
#include "cli/validators.h"
#include "config/schema.h"
#include "experiment/experiment_schema.h"

namespace stretto::cli {

using experiment::CommandOption;

/// An option as the command line has it, for all families that have it.
struct FamilyOptions::Declared {
  CommandOption option;  ///< as the first of them says it; `value` is the given one
  std::vector<std::string> families;
  CLI::Option* parsed = nullptr;

  bool given() const { return parsed->count() > 0; }
  /// As texts: of a flag none, and none of an empty text.
  std::vector<std::string> texts() const;
};

std::vector<std::string> FamilyOptions::Declared::texts() const {
  if (!given()) return {};
  if (const auto* number = std::get_if<int64_t>(&option.value)) return {std::to_string(*number)};
  if (const auto* several = std::get_if<std::vector<std::string>>(&option.value)) return *several;
  const auto* text = std::get_if<std::string>(&option.value);
  if (text == nullptr || text->empty()) return {};
  return {*text};
}

namespace {

// Binds an option's value; the parser keeps a reference to it.
CLI::Option* add_to(CLI::App& app, CommandOption& option) {
  if (auto* flag = std::get_if<bool>(&option.value)) {
    return app.add_flag(option.name, *flag, option.help);
  }
  CLI::Option* added = nullptr;
  if (auto* number = std::get_if<int64_t>(&option.value)) {
    added = app.add_option(option.name, *number, option.help);
    added->check(whole_number(option.least, option.most));
  } else if (auto* several = std::get_if<std::vector<std::string>>(&option.value)) {
    added = app.add_option(option.name, *several, option.help);
    added->allow_extra_args(false);
  } else {
    added = app.add_option(option.name, std::get<std::string>(option.value), option.help);
    if (!option.choices.empty()) added->check(one_of(option.choices));
  }
  return added->type_name(option.type);
}

}  // namespace

std::vector<CommandOfFamily> commands_of_families(
    const experiment::FamilyCommand* (*of)(const experiment::FamilySpec& family)) {
  std::vector<CommandOfFamily> found;
  for (const auto& family : experiment::families()) {
    if (const auto* command = of(family)) found.push_back({family.options.name, *command});
  }
  return found;
}

FamilyOptions::FamilyOptions(std::vector<CommandOfFamily> families)
    : families_(std::move(families)) {
  for (const auto& family : families_) {
    for (const auto& option : family.command.options) {
      const auto before = std::ranges::find_if(
          options_, [&](const auto& one) { return one->option.name == option.name; });
      if (before == options_.end()) {
        options_.push_back(std::make_unique<Declared>(Declared{option, {family.family}}));
        continue;
      }
      CommandOption& shared = (*before)->option;
      if (shared.value.index() != option.value.index()) {
        throw Error(ExitCode::kInternal, option.name + " has values of two types",
                    "families share the words of an option: families/text/command_options.h");
      }
      if (shared.help.find(option.help) == std::string::npos) shared.help += "; " + option.help;
      (*before)->families.push_back(family.family);
    }
  }
}

FamilyOptions::~FamilyOptions() = default;

void FamilyOptions::declare(CLI::App& app) {
  for (const auto& one : options_) one->parsed = add_to(app, one->option);
}

void FamilyOptions::check_values() const {
  // All are asked before the first is refused: a pipe that waits to be written is known by then
  // (end_named_pipes).
  std::optional<Error> first;
  for (const auto& one : options_) {
    if (!one->option.check) continue;
    for (const auto& text : one->texts()) {
      try {
        one->option.check(text);
      } catch (const Error& error) {
        if (!first) first = error;
      }
    }
  }
  if (first) throw *first;
}

bool FamilyOptions::name_data() const {
  return std::ranges::any_of(options_, [](const auto& one) {
    return !one->option.data_keys.empty() && !one->texts().empty();
  });
}

std::vector<std::string> FamilyOptions::words() const {
  std::vector<std::string> words;
  for (const auto& one : options_) {
    const auto* flag = std::get_if<bool>(&one->option.value);
    if (flag != nullptr && *flag) words.push_back(one->option.name);
    for (const auto& text : one->texts()) words.insert(words.end(), {one->option.name, text});
  }
  return words;
}

bool FamilyOptions::has(const std::string& family) const {
  return std::ranges::find(families_, family, &CommandOfFamily::family) != families_.end();
}

std::vector<std::string> FamilyOptions::families() const {
  std::vector<std::string> names;
  for (const auto& one : families_) names.push_back(one.family);
  return names;
}

// "decode.method=beam decode.beam_size=4": the keys by which a run of another family does what an
// option states, with the choice by which the last of them counts. Empty where it has no such key.
std::string FamilyOptions::as_keys(const Declared& one, const experiment::Experiment& experiment) {
  const std::string& key = one.option.key;
  if (key.empty()) return "";
  auto copy = experiment;
  const auto schema = experiment::experiment_schema(copy);
  const auto* found = schema.find(key.substr(0, key.find('=')));
  if (found == nullptr) return "";
  const auto texts = one.texts();
  const std::string stated = texts.empty() ? key : key + "=" + texts.front();
  const auto counts = [&](const config::ReadWith& reader) {
    const auto* deciding = schema.find(reader.deciding_key);
    return deciding == nullptr || config::reads_with(reader, config::chosen_value(*deciding));
  };
  const auto& readers = found->readers;
  if (readers.empty() || std::ranges::any_of(readers, counts)) return stated;
  if (readers.front().values.empty()) return stated;
  return readers.front().deciding_key + "=" + readers.front().values.front() + " " + stated;
}

void FamilyOptions::require_own(const experiment::Experiment& experiment) const {
  const std::string& family = experiment.task.name();
  const auto is_own = [&](const Declared& one) {
    return std::ranges::find(one.families, family) != one.families.end();
  };
  std::vector<std::string> own;
  for (const auto& one : options_) {
    if (is_own(*one)) own.push_back(one->option.name);
  }
  for (const auto& one : options_) {
    if (is_own(*one) || !one->given()) continue;
    const std::string keys = as_keys(*one, experiment);
    std::vector<std::string> advice;
    if (!keys.empty()) advice.push_back("write `" + keys + "` in its place");
    if (!own.empty()) advice.push_back("its own options are " + join(own, ", "));
    if (advice.empty()) advice.emplace_back("leave it out");
    throw Error(ExitCode::kUsage,
                one->option.name + " is an option for runs of " + join(one->families, ", ") +
                    ", and this run's task.name is \"" + family + "\"",
                join(advice, "; "));
  }
}

std::string FamilyOptions::data_words(const std::string& family) const {
  std::vector<std::string> words;
  for (const auto& option : options_of(family)) {
    if (!option.data_keys.empty()) words.push_back(option.name + " " + option.type);
  }
  return join(words, " ");
}

std::vector<std::string> FamilyOptions::stated_keys(const std::string& family) const {
  std::vector<std::string> keys;
  for (const auto& option : options_of(family)) {
    const Declared& one = declared(option.name);
    if (option.key.empty() || !one.given()) continue;
    if (const auto* flag = std::get_if<bool>(&one.option.value)) {
      if (*flag) keys.push_back(option.key);
      continue;
    }
    for (const auto& text : one.texts()) keys.push_back(option.key + "=" + text);
  }
  return keys;
}

experiment::FamilyValues FamilyOptions::values(const experiment::Experiment& experiment) const {
  experiment::FamilyValues values;
  const auto found = std::ranges::find(families_, experiment.task.name(), &CommandOfFamily::family);
  if (found == families_.end()) return values;
  for (const auto& option : found->command.options) {
    const Declared& one = declared(option.name);
    if (option.take && one.given()) option.take(one.option.value, values);
  }
  if (found->command.check != nullptr) found->command.check(experiment, values);
  return values;
}

const std::vector<CommandOption>& FamilyOptions::options_of(const std::string& family) const {
  static const std::vector<CommandOption> kNone;
  const auto found = std::ranges::find(families_, family, &CommandOfFamily::family);
  return found == families_.end() ? kNone : found->command.options;
}

// Every option of a family was declared.
const FamilyOptions::Declared& FamilyOptions::declared(const std::string& option) const {
  return **std::ranges::find_if(options_,
                                [&](const auto& one) { return one->option.name == option; });
}

}  // namespace stretto::cli
