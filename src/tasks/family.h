#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/loading.h"
#include "distributed/agreement.h"
#include "distributed/process_group.h"
#include "experiment/preflight.h"
#include "models/model_cost.h"
#include "optim/group_options.h"
#include "runs/initial_weights.h"
#include "tasks/requests.h"
#include "train/task.h"

namespace stretto::tasks {

/// Files that later commands need from the run folder, name -> bytes (the tokenizer's models).
using Assets = std::map<std::string, std::string>;

/// First weights of a network: drawn, or unset because a checkpoint's are loaded at once.
enum class FirstWeights : uint8_t { kDrawn, kUnset };

struct ExportedRun;

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
  /// @param warn  whether this process reports what is allowed, but odd
  virtual void require_known_data(bool warn) const = 0;
  /// Model and data in words, for the report and the log.
  virtual std::vector<std::pair<std::string, std::string>> facts() const = 0;
  /// What the data had that metrics.jsonl is to keep, such as samples that were left out.
  virtual std::vector<std::string> notes() const { return {}; }
  /// What `[data]` asks for: how micro-batches are prepared ahead, and the bound of an update: as
  /// many micro-batches as train.update_freq, in the units of optim.reference_batch.
  virtual data::Loading loading() const = 0;
  virtual int64_t update_bound() const = 0;
  /// `train.init_vocabulary = "match"`: the rows that each table takes from another run's.
  virtual std::vector<runs::MatchedTable> matched_tables(const runs::InitialRun& run) const = 0;
};

/// The commands that a family may be short of memory in.
enum class MemoryUse : uint8_t { kTrain, kEval, kInfer };

/// A family of tasks as the commands see it: src/families/NAME/engine, and a line in
/// families/engine_registry.cpp. What needs no libtorch is experiment::FamilySpec.
class Family {
 public:
  virtual ~Family() = default;

  /// Files of a run that begins: read, trained or taken over from `train.init_from`.
  virtual Assets first_assets(const experiment::LoadedExperiment& experiment) const = 0;
  /// @param assets  of the run folder
  virtual std::unique_ptr<FamilyTask> make_task(const experiment::Experiment& experiment,
                                                const Assets& assets,
                                                const CommandContext& context) const = 0;

  /// `stretto eval`, `infer` and `embed`: the exit code. The last two are one process. A family
  /// with FamilySpec::embed overrides embed(), which otherwise throws Error(kUsage).
  virtual int eval(const EvalRequest& request, const CommandContext& context) const = 0;
  virtual int infer(const InferRequest& request, const CommandContext& context) const = 0;
  virtual int embed(const EmbedRequest& request, const CommandContext& context) const;

  /// What to do about a lack of memory: "halve …", with the keys of the family.
  virtual std::string memory_advice(MemoryUse use) const = 0;

  /// The parameters of the model that an experiment describes, in the arena's order, and what it
  /// weighs and costs. The model is made without memory. Throw Error(kUsage) where its parts do not
  /// fit together.
  virtual std::vector<optim::TensorName> tensor_names(
      const experiment::Experiment& experiment) const = 0;
  virtual models::ModelCost model_cost(const CostRequest& request) const = 0;
  /// The network of a run whose weights come from elsewhere: on the CPU with its first weights, or
  /// its names and shapes alone, on the meta device.
  /// @param assets  of the run folder: they say how many ids and labels there are
  virtual std::shared_ptr<torch::nn::Module> make_network(const experiment::Experiment& experiment,
                                                          const Assets& assets,
                                                          bool draws_weights) const = 0;

  /// `stretto export`: writes the model as the class of `transformers`, or of the package that the
  /// format names, that is equal to it, and returns the name of the class. Throws Error(kUsage)
  /// where there is none: by default always. FamilySpec::formats has those that are asked for.
  virtual std::string export_model(const ExportedRun& run, const ExportRequest& request) const;

  /// Notes in `found` where training would stop at the weights that `train.init_from` names.
  virtual void check_weights(const experiment::CheckRequest& request,
                             experiment::Preflight& found) const = 0;
  /// Throws Error(kBadData) unless another run's model has room for the data of `own`.
  /// @param place  the other run's folder
  virtual void require_room(const std::filesystem::path& place, const experiment::Experiment& other,
                            const experiment::Experiment& own) const = 0;
};

}  // namespace stretto::tasks
