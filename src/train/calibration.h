#pragma once

#include <map>
#include <string>
#include <vector>

#include "compress/quantise_inputs.h"
#include "kernels/compute.h"
#include "train/task.h"

namespace stretto::train {

/// What the linear maps of a task's model see, by the name of the weight: for weights that are
/// rounded by it (compress::Rounding::kCalibrated). Validates once, since training would drop a
/// part of what they see: all validation data are read, on one thread. Leaves the model in eval
/// mode. Throws Error(kUsage) where the experiment has no validation data.
std::map<std::string, std::vector<compress::RowInputs>> calibrate(
    Task& task, kernels::Compute compute = kernels::Compute::kFp32);

}  // namespace stretto::train
