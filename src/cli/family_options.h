#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/family_spec.h"

namespace stretto::cli {

/// A command as a family has it.
struct CommandOfFamily {
  std::string family;  ///< the value of task.name
  experiment::FamilyCommand command;
};

/// A command of all families that have it, in the order of the registry.
/// @param of  of one family: a pointer into it, or null
std::vector<CommandOfFamily> commands_of_families(
    const experiment::FamilyCommand* (*of)(const experiment::FamilySpec& family));

/// The options of a command that not every family has: declared together, since the run that says
/// which family it is of is read after the words.
class FamilyOptions {
 public:
  /// Throws Error(kInternal) where families mean values of different types by one name.
  explicit FamilyOptions(std::vector<CommandOfFamily> families);
  ~FamilyOptions();
  FamilyOptions(const FamilyOptions&) = delete;
  FamilyOptions& operator=(const FamilyOptions&) = delete;

  /// Adds all options to a command, family by family; one that several have is added once. Call it
  /// once, before anything below.
  void declare(CLI::App& app);

  /// Throws Error for a given value that no run can take.
  void check_values() const;
  /// Whether what is evaluated was given, and so is not the run's own data.
  bool name_data() const;
  /// The given options as words of a command line.
  std::vector<std::string> words() const;

  /// Whether a family has the command.
  bool has(const std::string& family) const;
  std::vector<std::string> families() const;
  /// Throws Error(kUsage) for the first option that was given and is none of the family of this
  /// experiment, with the options that are, and the keys that do in this run what it states.
  void require_own(const experiment::Experiment& experiment) const;
  /// How the data that is evaluated is given to a family: "--src FILE --tgt FILE".
  std::string data_words(const std::string& family) const;
  /// The keys that given options state in the configuration of a family, as overrides.
  std::vector<std::string> stated_keys(const std::string& family) const;
  /// What was given, for the family of this experiment. Throws as FamilyCommand::check.
  experiment::FamilyValues values(const experiment::Experiment& experiment) const;

 private:
  struct Declared;

  static std::string as_keys(const Declared& one, const experiment::Experiment& experiment);
  const std::vector<experiment::CommandOption>& options_of(const std::string& family) const;
  const Declared& declared(const std::string& option) const;

  const std::vector<CommandOfFamily> families_;
  std::vector<std::unique_ptr<Declared>> options_;  // the parser points into them
};

}  // namespace stretto::cli
