#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/family_spec.h"

namespace stretto::cli {

/// An option of a command that reads the run of any family, for some of them.
struct FamilyOption {
  std::string option;                      ///< "--src"
  std::vector<std::string_view> families;  ///< values of task.name
  /// What it states in their configurations: "decode.beam_size", a whole number, or of a flag
  /// "decode.method=sample". Empty = their requests have its value.
  std::string key = {};
  std::vector<std::string_view> without_key = {};  ///< of the families, whose requests have it
};

/// The options of all families, in the order in which the command declares them.
/// @param of  &FamilySpec::eval_options, or those of another command
std::vector<FamilyOption> family_options(
    const CLI::App& app, std::vector<experiment::CommandOption> experiment::FamilySpec::*of);

/// Throws Error(kUsage) for the first option that was given and is none of the family of this
/// experiment, with the options that are.
void require_own_options(const CLI::App& app, std::span<const FamilyOption> options,
                         const experiment::Experiment& experiment);

/// The keys that given options state in the configuration of a family which has these options, as
/// overrides. A family without such a key refuses it when they are read.
std::vector<std::string> stated_keys(const CLI::App& app, std::span<const FamilyOption> options,
                                     const std::string& family);

}  // namespace stretto::cli
