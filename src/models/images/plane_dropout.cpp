#include "models/images/plane_dropout.h"

#include <ATen/ATen.h>

#include <vector>

namespace stretto::models {

at::Tensor drop_planes(const at::Tensor& x, const kernels::Dropout& dropout) {
  if (!dropout.active()) return x;
  const at::Tensor rows = x.permute({0, 2, 3, 1});  // dense in channels-last memory
  const at::Tensor dropped = kernels::dropout(rows.flatten(1), dropout);
  return dropped.view(rows.sizes()).permute({0, 3, 1, 2});
}

at::Tensor drop_samples(const at::Tensor& x, const kernels::Dropout& dropout) {
  if (!dropout.active()) return x;
  const at::Tensor ones = at::ones({x.size(0), 1}, x.options().requires_grad(false));
  std::vector<int64_t> beside(static_cast<size_t>(x.dim()), 1);
  beside.front() = x.size(0);
  return x * kernels::dropout(ones, dropout).view(beside);
}

}  // namespace stretto::models
