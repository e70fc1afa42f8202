#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "optim/frozen_names.h"
#include "optim/group_options.h"

/// The keys of an experiment that name tensors by patterns: `optim.groups`, `optim.no_decay`,
/// `optim.lazy_tables`, `optim.muon_adam_tensors`, `optim.weight_noise_tensors`, `model.init`,
/// `model.lora`, `model.adapter`, `train.freeze`, `train.unfreeze`, `train.init_only`, and
/// `tensors` and `except` of `compress.prune` and `compress.quantise`; `optim.layer_decay` reads
/// their names, too.
namespace stretto::experiment {

/// Lists the tensors of the model that an experiment describes. Only the engine can, and to open it
/// takes a third of a second.
using TensorLister = std::function<std::vector<optim::TensorName>(const Experiment&)>;

/// Whether one of these keys is given (experiment/tensor_keys.h lists them): only then is a
/// TensorLister worth asking.
bool names_tensors(const Experiment& options);

/// Which tensors train, and from when: `train.freeze`, `train.unfreeze`, `model.lora` and
/// `model.adapter`. Entries that cannot be read are left out.
optim::TrainingPlan training_plan(const Experiment& options);

struct PatternProblem {
  std::string key, what, hint;
};

/// Entries that cannot be read, whatever the model.
std::vector<PatternProblem> entry_problems(const Experiment& options);

/// What is wrong beside the names of a model: a pattern that matches nothing, an initialiser of
/// matrices that reaches vectors, patterns that freeze everything. Entries that cannot be read are
/// passed over.
///
/// @param lister  asked once more where a pattern of `model.lora` or `model.adapter` matches
///                nothing, for names to choose from; null = the hint has none
std::vector<PatternProblem> name_problems(const Experiment& options,
                                          std::span<const optim::TensorName> tensors,
                                          const TensorLister& lister = nullptr);

}  // namespace stretto::experiment
