#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/load.h"
#include "experiment/experiment.h"
#include "experiment/other_model.h"
#include "experiment/rules.h"

namespace stretto::experiment {

/// An experiment that is known to be sound, with its resolved text.
struct LoadedExperiment {
  Experiment options;
  config::Origins origins;
  std::string resolved_toml;  ///< every key, absolute paths, comments
  std::string config_hash;    ///< 16 hex digits over the fixed keys
  std::string taken = {};     ///< as ReadExperiment has it, for people; empty = nothing was taken
};

/// LoadedExperiment::config_hash of these options.
std::string config_hash_of(const Experiment& experiment);

/// Reads a configuration file and overrides and checks everything that can be checked before
/// anything is built: keys, types, ranges, rules across sections, files. Throws Error(kUsage) with
/// all problems.
/// @param beside  from what keys of `[model]` that are not given are taken (read_experiment())
LoadedExperiment load_experiment(const std::filesystem::path& path,
                                 const std::vector<std::string>& overrides,
                                 const ReadContext& read_context = {});

/// What load_experiment() cannot judge without the engine: the problems of check_patterns(). Asks
/// for tensors only when the experiment names some.
std::vector<config::Problem> pattern_problems(const LoadedExperiment& experiment,
                                              const TensorLister& tensors);
/// Throws Error(kUsage) with these problems.
void require_patterns_match(const LoadedExperiment& experiment, const TensorLister& tensors);

/// The configuration that a run folder keeps, with overrides of decode.*, eval.* and the like;
/// files of the training data need not exist any more. Its notes are those on overrides: nobody
/// edits the names in a run folder.
LoadedExperiment load_stored_experiment(const std::string& toml, const std::string& where,
                                        const std::vector<std::string>& overrides);

/// The hash of a configuration as `config_hash` is, over the fixed keys that its text states: of a
/// file in which a release wrote every key that it knew, what that release called its hash.
std::string stated_config_hash(const std::string& toml, const std::string& where);

/// Lines that say how the fixed keys of a stored configuration differ from `now`; empty = same
/// experiment.
std::vector<std::string> differences_from(const std::string& stored_toml, const std::string& where,
                                          const Experiment& now, bool extend);

}  // namespace stretto::experiment
