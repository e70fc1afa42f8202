#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/family_values.h"

/// What a family says of the commands that read the run of any family.
namespace stretto::experiment {

/// A flag, a number, a text, or the texts of an option that may be repeated.
using CommandValue = std::variant<bool, int64_t, std::string, std::vector<std::string>>;

/// An option of a command, for runs of a family that has it. Families that share an option share
/// its name, its type and its bounds; words that `--help` says of it for one alone stand behind
/// those of the families before it.
struct CommandOption {
  std::string name;       ///< "--beam"
  std::string type = {};  ///< what `--help` calls its value: "FILE"; a flag has none
  std::string help;
  CommandValue value = std::string();     ///< of the type that its values have
  int64_t least = 0, most = INT64_MAX;    ///< of a number
  std::vector<std::string> choices = {};  ///< of a text; empty = any
  /// What it states in the run's configuration: "decode.beam_size" is given its value, and
  /// "decode.method=sample" is stated by a flag. Empty = `take` has its value.
  std::string key = {};
  /// The keys of the run's own data in whose place it names what is evaluated: that of validation,
  /// then that of training. Empty = it names no such data.
  std::vector<std::string> data_keys = {};
  /// Throws Error for a value that no run can take. Asked before anything is read.
  std::function<void(const std::string&)> check = {};
  std::function<void(const CommandValue&, FamilyValues&)> take = {};
};

/// An option whose value goes to a member of the family's struct.
template <class T, class V>
CommandOption command_option(V T::*member, CommandOption option) {
  option.value = V();
  option.take = [member](const CommandValue& value, FamilyValues& values) {
    values.edit<T>().*member = std::get<V>(value);
  };
  return option;
}

/// CommandOption::check of a file that is read. Throws Error(kUsage) where there is none. A member
/// of a .zip file is left to its reader, and an empty name is no file.
std::function<void(const std::string&)> must_exist(const std::string& advice);

/// CommandOption::check of a file that is written: require_output_place().
std::function<void(const std::string&)> must_be_writable(const std::string& option);

/// A command as a family has it.
struct FamilyCommand {
  /// Those that not every family has, in the order of `--help`.
  std::vector<CommandOption> options = {};
  /// Throws Error(kUsage) for values that do not fit together, or not this run. Asked before the
  /// engine is opened.
  void (*check)(const Experiment& experiment, const FamilyValues& values) = nullptr;
  /// The keys that bound a batch of the command, where other keys bound a micro-batch of training:
  /// "eval.max_tokens". Empty = those of the same names in `[eval]` and `[decode]`.
  std::vector<std::string> batch_keys = {};
};

}  // namespace stretto::experiment
