#include "compress/quantise_values.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace stretto::compress {

at::Tensor dense_matrix(const at::Tensor& weight, const store::QuantFormat& format,
                        const std::string& name) {
  const auto problem = store::packing_problem(format, weight.sizes().vec());
  TORCH_CHECK(problem.empty(), "[quantise] `", name, "`: ", problem);
  const at::Tensor matrix =
      weight.detach().to(at::kCPU, at::kFloat).reshape({weight.size(0), -1}).contiguous();
  if (!at::isfinite(matrix).all().item<bool>()) {
    throw Error(ExitCode::kNumeric, "`" + name + "` has values that are infinite or NaN",
                "compress another checkpoint of the run");
  }
  return matrix;
}

store::QuantisedValues empty_values(const store::QuantFormat& format,
                                    const store::QuantLayout& layout) {
  store::QuantisedValues values;
  values.codes.resize(static_cast<size_t>(layout.rows * layout.columns));
  values.scales.resize(static_cast<size_t>(layout.num_scales()));
  if (!format.symmetric) values.zeros.resize(values.scales.size());
  return values;
}

ScaleAndZero choice_at(const store::QuantisedValues& values, int64_t index) {
  const auto at = static_cast<size_t>(index);
  return {.scale = values.scales[at], .zero = values.zeros.empty() ? int8_t{0} : values.zeros[at]};
}

void set_choice(store::QuantisedValues& values, int64_t index, const ScaleAndZero& choice) {
  const auto at = static_cast<size_t>(index);
  values.scales[at] = choice.scale;
  if (!values.zeros.empty()) values.zeros[at] = choice.zero;
}

store::QuantisedTensor packed_values(const store::QuantFormat& format,
                                     const std::vector<int64_t>& shape,
                                     const store::QuantisedValues& values,
                                     const std::string& name) {
  const auto is_finite = [](float scale) { return std::isfinite(scale); };
  if (!std::ranges::all_of(values.scales, is_finite)) {
    throw Error(ExitCode::kBadData,
                "`" + name + "` has weights so large that fp16 has no scale for them",
                "leave this tensor as it is by a pattern, or train with weight decay");
  }
  return store::pack(format, shape, values);
}

}  // namespace stretto::compress
