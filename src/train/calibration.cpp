#include "train/calibration.h"

#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "kernels/one_thread.h"

namespace stretto::train {

std::map<std::string, std::vector<compress::RowInputs>> calibrate(Task& task,
                                                                  kernels::Compute compute) {
  if (!task.can_validate()) {
    throw Error(ExitCode::kUsage, "there is no validation data to calibrate with",
                "name some in [data], or round without calibration");
  }
  // A validation shares its batches out among threads (parallel/parallel_jobs.h), and each of them
  // tells of its own products alone: what calibration saw would depend on who was first.
  const kernels::OneThreadScope one_thread;
  task.model().eval();
  const at::NoGradGuard no_grad;
  const kernels::ComputeScope arithmetic(compute);
  const compress::InputStatistics statistics(task.model());
  task.validate();
  return statistics.found();
}

}  // namespace stretto::train
