#include "tasks/finite_answers.h"

#include "base/error.h"
#include "kernels/compute.h"

namespace stretto::tasks {

void refuse_not_finite(const std::string& place, const std::string& what, const std::string& run) {
  const std::string found = place + ": " + what +
                            " has values that are infinite or NaN, though the weights of " + run +
                            " are finite";
  if (kernels::ComputeScope::current() == kernels::Compute::kFp16) {
    throw Error(ExitCode::kNumeric, found,
                "they may be too large for fp16, which ends at 65504: give eval.precision=fp32 or "
                "mixed_bf16");
  }
  throw Error(ExitCode::kNumeric, found,
              "they are too large for fp32: name another checkpoint with --checkpoint, or train "
              "anew with a lower optim.lr");
}

}  // namespace stretto::tasks
