#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "optim/frozen_names.h"
#include "optim/group_options.h"

/// The keys of an experiment that name tensors by patterns: `optim.groups`, `optim.no_decay`,
/// `optim.lazy_tables`, `optim.weight_noise_tensors`, `model.init`, `model.lora`,
/// `model.adapter`, `train.freeze`, `train.unfreeze` and `train.init_only`; `optim.layer_decay`
/// reads their names, too.
namespace stretto::experiment {

/// The first of these keys that is given; empty = none.
std::string key_that_names_tensors(const Experiment& options);

/// Whether there is such a key: only then is a TensorLister (experiment/rules.h) worth asking.
inline bool names_tensors(const Experiment& options) {
  return !key_that_names_tensors(options).empty();
}

/// Which tensors train, and from when: `train.freeze`, `train.unfreeze`, `model.lora` and
/// `model.adapter`. Entries that cannot be read are left out.
optim::TrainingPlan training_plan(const Experiment& options);

struct PatternProblem {
  std::string key, what, hint;
};

/// Entries that cannot be read, whatever the model.
std::vector<PatternProblem> entry_problems(const Experiment& options);

/// What is wrong beside the names of a model: a pattern that matches nothing, an initialiser of
/// matrices that reaches vectors, patterns that freeze everything. Of entries that cannot be read
/// nothing is said.
std::vector<PatternProblem> name_problems(const Experiment& options,
                                          std::span<const optim::TensorName> tensors);

}  // namespace stretto::experiment
