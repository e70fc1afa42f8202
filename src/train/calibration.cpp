#include "train/calibration.h"

#include <ATen/core/grad_mode.h>

#include "base/error.h"

namespace stretto::train {

std::map<std::string, std::vector<compress::RowInputs>> calibrate(Task& task,
                                                                  kernels::Compute compute) {
  if (!task.can_validate()) {
    throw Error(ExitCode::kUsage, "there is no validation data to calibrate with",
                "name some in [data], or round without calibration");
  }
  task.model().eval();
  const at::NoGradGuard no_grad;
  const kernels::ComputeScope arithmetic(compute);
  const compress::InputStatistics statistics(task.model());
  task.validate();
  return statistics.found();
}

}  // namespace stretto::train
