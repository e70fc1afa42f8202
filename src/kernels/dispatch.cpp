#include "kernels/dispatch.h"

#include <ATen/ATen.h>

namespace stretto::kernels {

void check_offsets(const Offsets& offsets, int64_t rows, const char* name, const char* what) {
  const at::Tensor& values = offsets.values;
  TORCH_CHECK(values.defined() && values.dim() == 1 && values.size(0) >= 1, "[kernels] ", name,
              ": ", what, " must be a vector of one number more than there are sequences");
  if (!values.is_cpu()) return;
  const at::Tensor bounds = values.to(at::kInt).contiguous();
  const int32_t* at = bounds.const_data_ptr<int32_t>();
  const int64_t count = bounds.numel();
  bool rises = at[0] == 0 && at[count - 1] == rows;
  for (int64_t i = 1; i < count; ++i) rises = rises && at[i] >= at[i - 1];
  TORCH_CHECK(rises, "[kernels] ", name, ": ", what, " must rise from 0 to the ", rows,
              " rows, got ", values);
}

void check_range(const at::Tensor& indices, int64_t count, const char* name, const char* what) {
  if (indices.numel() == 0) return;
  const auto [least, most] = at::aminmax(indices);
  TORCH_CHECK(least.item<int64_t>() >= 0 && most.item<int64_t>() < count, "[kernels] ", name, ": ",
              what, "s must lie in [0, ", count, "), got ", least.item<int64_t>(), " to ",
              most.item<int64_t>());
}

}  // namespace stretto::kernels
