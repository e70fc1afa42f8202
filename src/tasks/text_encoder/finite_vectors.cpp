#include "tasks/text_encoder/finite_vectors.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/compute.h"

namespace stretto::tasks {
namespace {

// The first one's name; empty = none.
std::string weight_that_is_not_finite(const torch::nn::Module& model) {
  for (const auto& weight : model.named_parameters()) {
    if (!torch::isfinite(weight.value()).all().item<bool>()) return weight.key();
  }
  return "";
}

}  // namespace

void require_finite(const at::Tensor& vectors, std::span<const data::InputLine> lines,
                    const torch::nn::Module& model, const std::string& run) {
  const std::span<const float> values(vectors.data_ptr<float>(),
                                      static_cast<size_t>(vectors.numel()));
  const auto bad =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (bad == values.end()) return;
  const auto row = static_cast<size_t>((bad - values.begin()) / vectors.size(1));
  const std::string what =
      lines[row].place + ": the vector of this line has values that are infinite or NaN";
  const std::string weight = weight_that_is_not_finite(model);
  if (!weight.empty()) {
    throw Error(ExitCode::kNumeric, what + ", and so has `" + weight + "` of " + run,
                "name another checkpoint with --checkpoint, or train or import the run anew");
  }
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
