#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "config/load.h"
#include "experiment/experiment.h"
#include "experiment/task_rules.h"
#include "experiment/tensor_patterns.h"
#include "optim/group_options.h"

namespace stretto::experiment {

/// False when a file could not be read at all: what is left out of it is not the user's mistake,
/// and rules would only complain about its absence.
bool readable(const std::vector<config::Problem>& problems);

/// What a configuration is for: a training, or the use of a run that has it stored.
enum class Purpose : uint8_t { kTraining, kUse };

/// Rules across keys and sections: a warm-up shorter than the run, at least one stop that can be
/// reached, and so on, with those of the family that `task.name` names (experiment/task_rules.h).
/// Adds to `problems`; a rule is left out when one of its keys has a problem already.
void check_rules(const Experiment& options, const config::Origins& origins,
                 std::vector<config::Problem>& problems, Purpose purpose = Purpose::kTraining);

/// The same with the rules of this family; null = with none.
void check_rules(const Experiment& options, const config::Origins& origins, const TaskRules* task,
                 std::vector<config::Problem>& problems, Purpose purpose = Purpose::kTraining);

/// Whether the model, its vocabulary and its tensors are known beside these problems.
bool describes_a_model(const std::vector<config::Problem>& problems);

/// A problem for each pattern of these keys that matches none of the model's tensors, for an
/// initialiser of matrices that reaches vectors, and for patterns that freeze everything. Adds to
/// `problems`; a pattern is left out when its key, or any of the model's, has a problem already.
///
/// @param tensors  of that model; empty = not known, and nothing is judged
/// @param lister   for hints, see name_problems()
void check_patterns(const Experiment& options, const config::Origins& origins,
                    std::span<const optim::TensorName> tensors,
                    std::vector<config::Problem>& problems, const TensorLister& lister = nullptr);

/// A problem for each file that is named and does not exist; of a zip member the archive counts.
///
/// @param schema           of the experiment, with its values
/// @param problems         of reading the configuration: keys that they name are left out
/// @param only_overridden  only of keys that came from the command line
std::vector<config::Problem> missing_files(const config::Schema& schema,
                                           const config::Origins& origins,
                                           const std::vector<config::Problem>& problems,
                                           bool only_overridden = false);

}  // namespace stretto::experiment
