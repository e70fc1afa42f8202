#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "runs/initial_weights.h"

namespace stretto::tasks {

/// The model of the run that `train.init_from` names, as that run's configuration describes it:
/// read once, here. It is not known for weights outside of a run, nor where the configuration
/// cannot be read.
class InitialModel {
 public:
  explicit InitialModel(const runs::InitialRun& run);

  /// Compares its `[model]` with that of the run that begins (TaskRules::hidden_differences):
  /// weights would load, and mean something else. Throws Error(kUsage) with keys and values. With
  /// `train.init_only`, which names what is taken, parts that it leaves out do not count, and this
  /// is a warning; so is a configuration that cannot be read. Asks nothing of a checkpoint outside
  /// of a run.
  void require_alike(const experiment::Experiment& own) const;

  /// Calls what throws Error(kBadData) for tensors that do not fit. Where require_alike() warns of
  /// differences, the advice of that error names them: shapes show some of them, too.
  void explain_misfit(const experiment::Experiment& own, const std::function<void()>& look) const;

  /// Whether its head is another task's: tensors of the same name and shape then mean something
  /// else, as weights of classes and of the ends of an answer do. Only for tasks on encoded texts.
  /// False where the other run has no head (the pooler beside such an encoder is any task's), or
  /// where it is not known.
  bool has_another_head(const experiment::Experiment& own) const;

 private:
  /// Keys and values, by TaskRules::hidden_differences; empty = none is known.
  std::string differences(const experiment::Experiment& own) const;

  std::filesystem::path folder_, place_;  ///< as runs::InitialRun has them
  bool is_imported_;                      ///< of a model folder, which has no config.toml
  std::vector<std::string> tensors_;      ///< names of the checkpoint's
  std::optional<experiment::Experiment> options_;
  std::string problem_;  ///< why the configuration cannot be read
};

}  // namespace stretto::tasks
