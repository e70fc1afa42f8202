#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "config/load.h"
#include "experiment/experiment.h"
#include "experiment/taken_values.h"

/// Keys that a configuration leaves to the run of `train.init_from`: those of `[model]`, and
/// `tokenizer.vocab_multiple`, which decides how many rows its tables have.
namespace stretto::experiment {

/// What stands beside a configuration when it is read.
struct ReadContext {
  /// The folder of the run that the configuration is for. A run that has a checkpoint keeps its
  /// model, and the folder of `train.init_from` may be gone. Empty = no run is meant.
  std::filesystem::path run_directory = {};
  /// Describes what is no run of Stretto, such as a model folder of `transformers`; nothing where
  /// it is no model. Empty = such folders are not read.
  std::function<std::optional<OtherModel>(const std::filesystem::path& folder,
                                          const Experiment& own)>
      describe = {};
};

/// The other model of an experiment. Nothing without `train.init_from`, and where its folder cannot
/// be read: whoever opens the weights says why.
std::optional<OtherModel> find_other_model(const Experiment& own, const ReadContext& read_context);

/// What the family of `own` takes from the other model (TaskRules::values_of_other_model), as a
/// file beneath those that were read. @param given  keys that `own` states
config::InheritedValues inherited_values(const OtherModel& other, const Experiment& own,
                                         const config::Origins& given);

/// "[model] from runs/bert: preset = "none", num_layers = 2": what was taken and is no default, in
/// one line. Empty where nothing was taken.
std::string taken_text(const Experiment& options, const config::Origins& origins,
                       const OtherModel& other);

}  // namespace stretto::experiment
