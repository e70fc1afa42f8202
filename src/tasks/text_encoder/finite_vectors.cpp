#include "tasks/text_encoder/finite_vectors.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/compute.h"

namespace stretto::tasks {

void require_finite(const at::Tensor& vectors, std::span<const data::InputLine> lines,
                    const std::string& run) {
  const std::span<const float> values(vectors.data_ptr<float>(),
                                      static_cast<size_t>(vectors.numel()));
  const auto bad =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (bad == values.end()) return;
  const auto row = static_cast<size_t>((bad - values.begin()) / vectors.size(1));
  const std::string what =
      lines[row].place + ": the vector of this line has values that are infinite or NaN";
  if (kernels::ComputeScope::current() == kernels::Compute::kFp16) {
    throw Error(ExitCode::kNumeric, what + ", though the weights of " + run + " are finite",
                "they may be too large for fp16, which ends at 65504: give eval.precision=fp32 or "
                "mixed_bf16");
  }
  throw Error(ExitCode::kNumeric, what + ", though the weights of " + run + " are finite",
              "they are too large for fp32: name another checkpoint with --checkpoint, or train "
              "anew with a lower optim.lr");
}

}  // namespace stretto::tasks
