#pragma once

#include <vector>

#include "config/problem.h"
#include "experiment/experiment.h"
#include "experiment/taken_values.h"

namespace stretto::experiment {

/// TaskRules::values_of_other_model of tasks on encoded texts: the encoder's keys. `model.head` is
/// the task's own, and so is `model.pooling` unless the other model pools rows for a head.
std::vector<TakenValue> encoder_values_of(const OtherModel& other, const Experiment& own,
                                          const config::Origins& given);

}  // namespace stretto::experiment
