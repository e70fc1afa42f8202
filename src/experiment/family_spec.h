#pragma once

#include <optional>
#include <vector>

#include "config/open_choice.h"
#include "data/data_file.h"
#include "experiment/command_option.h"
#include "experiment/experiment.h"
#include "experiment/family_distillation.h"
#include "experiment/family_export.h"
#include "experiment/family_plan.h"
#include "experiment/task_rules.h"
#include "report/display.h"

namespace stretto::interchange {
class ModelFolders;
}

/// What a family of tasks hands in; no other room knows it. No libtorch. What needs tensors is a
/// tasks::Family.
namespace stretto::experiment {

/// A family as the rooms without libtorch see it. src/families/NAME/NAME_spec.cpp has that of NAME,
/// and src/families/registry.cpp a line for each.
struct FamilySpec {
  /// Its name, the value of `task.name`, and its sections: config::open_alternative() of their
  /// struct.
  config::OpenAlternative options;
  std::vector<const char*> also_called;  ///< values of `task.name` in other toolkits
  const TaskRules& (*rules)();
  /// How its numbers are printed and drawn, but for Display::best_by.
  report::Display (*display)(const Experiment& experiment);
  FamilyCommand eval = {}, infer = {};      ///< what not every family has of them
  std::optional<FamilyCommand> embed = {};  ///< nothing: its models give no vectors of lines
  std::optional<FamilyPlan> plan = {};      ///< nothing: `stretto plan` cannot tell
  std::optional<FamilyDistillation> distillation = {};  ///< nothing: `stretto distill` cannot
  /// What it knows of folders of `transformers` (interchange/model_folders.h); null: nothing, so
  /// that it imports none.
  const interchange::ModelFolders& (*folders)() = nullptr;
  /// How `stretto export` writes its models (tasks::Family::export_model()), beside safetensors.
  std::vector<ExportFormat> formats = {};
  /// The data that `[data]` names, by key, in which one may be a folder or a manifest: those that
  /// files_of_path_keys() finds with their kinds (experiment/data_files.h). Null: all are text.
  std::vector<data::DataFile> (*data_files)(const Experiment& experiment) = nullptr;
};

/// All families, in the order in which `stretto describe` lists them; the first one is the default
/// of `task.name`. src/families/registry.cpp has the list.
const std::vector<FamilySpec>& families();

/// Adds a family that this library does not have, behind the others: a program of its own may bring
/// one. Call it before the first configuration is read, and before there are threads.
void add_family(FamilySpec family);

/// The family that `task.name` names; null for another name, which is a problem of its own.
const FamilySpec* find_family(const Experiment& experiment);

/// How the numbers of an experiment's task are printed and drawn. `task.name` must be a family's.
report::Display display_of(const Experiment& experiment);

}  // namespace stretto::experiment
