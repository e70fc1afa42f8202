#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "distributed/agreement.h"
#include "distributed/process_group.h"
#include "experiment/preflight.h"
#include "runs/initial_weights.h"
#include "tasks/requests.h"
#include "train/task.h"

namespace stretto::tasks {

/// Files that later commands need from the run folder, name -> bytes (the tokenizer's models).
using Assets = std::map<std::string, std::string>;

/// Where a command computes.
struct CommandContext {
  distributed::ProcessGroup group = {};
  at::Device device = at::kCPU;
};

/// A task as commands make it: what the training loop sees, and what is asked before it begins.
class FamilyTask : public train::Task {
 public:
  /// Training and validation data, for processes to compare: other data make other batches.
  virtual std::vector<distributed::Fact> data_facts() const = 0;
  /// Looks at how well the task knows its data. Throws Error(kBadData) when it hardly does.
  /// @param warn  whether this process tells of what is allowed, but odd
  virtual void require_known_data(bool warn) const = 0;
  /// Model and data in words, for the report and the log.
  virtual std::vector<std::pair<std::string, std::string>> facts() const = 0;
  /// `train.init_vocabulary = "match"`: the rows that each table takes from another run's.
  virtual std::vector<runs::MatchedTable> matched_tables(const runs::InitialRun& run) const = 0;
};

/// A family of tasks as the commands see it: a folder of this room, and a line in `registry.cpp`.
/// How its numbers are told and drawn stands in `displays.h`, which needs no libtorch.
class Family {
 public:
  virtual ~Family() = default;

  /// Files of a run that begins: read, trained or taken over from `train.init_from`.
  virtual Assets first_assets(const experiment::LoadedExperiment& experiment) const = 0;
  /// @param assets  of the run folder
  virtual std::unique_ptr<FamilyTask> make_task(const experiment::Experiment& experiment,
                                                const Assets& assets,
                                                const CommandContext& context) const = 0;

  /// `stretto eval` and `stretto infer`: the exit code. `infer` is one process.
  virtual int eval(const EvalRequest& request, const CommandContext& context) const = 0;
  virtual int infer(const InferRequest& request, const CommandContext& context) const = 0;

  /// Notes in `found` where training would stop at the weights that `train.init_from` names.
  virtual void check_weights(const experiment::CheckRequest& request,
                             experiment::Preflight& found) const = 0;
  /// Throws Error(kBadData) unless another run's model has room for the data of `own`.
  /// @param place  the other run's folder
  virtual void require_room(const std::filesystem::path& place, const experiment::Experiment& other,
                            const experiment::Experiment& own) const = 0;
};

}  // namespace stretto::tasks
