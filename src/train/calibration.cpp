#include "train/calibration.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"

namespace stretto::train {
namespace {

/// A validation shares its batches out among threads (parallel/parallel_jobs.h), and each of them
/// tells of its own products alone: what calibration saw would depend on who was first.
class CalibrationThread {
 public:
  CalibrationThread() { at::set_num_threads(1); }
  ~CalibrationThread() { at::set_num_threads(before_); }
  CalibrationThread(const CalibrationThread&) = delete;
  CalibrationThread& operator=(const CalibrationThread&) = delete;

 private:
  const int before_ = at::get_num_threads();
};

}  // namespace

std::map<std::string, std::vector<compress::RowInputs>> calibrate(Task& task,
                                                                  kernels::Compute compute) {
  if (!task.can_validate()) {
    throw Error(ExitCode::kUsage, "there is no validation data to calibrate with",
                "name some in [data], or round without calibration");
  }
  const CalibrationThread one_thread;
  task.model().eval();
  const at::NoGradGuard no_grad;
  const kernels::ComputeScope arithmetic(compute);
  const compress::InputStatistics statistics(task.model());
  task.validate();
  return statistics.found();
}

}  // namespace stretto::train
