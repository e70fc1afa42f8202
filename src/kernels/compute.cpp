#include "kernels/compute.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "kernels/cpu/table.h"
#include "kernels/rounding.h"

namespace stretto::kernels {
namespace {

thread_local Compute in_use = Compute::kFp32;

constexpr int64_t kGrain = 1 << 15;  // numbers worth a thread

void round_into(const at::Tensor& from, at::Tensor& to, Compute compute) {
  const float* source = from.const_data_ptr<float>();
  float* target = to.data_ptr<float>();
  at::parallel_for(0, from.numel(), kGrain, [&](int64_t begin, int64_t end) {
    cpu::table().round(source + begin, target + begin, end - begin, compute);
  });
}

}  // namespace

ComputeScope::ComputeScope(Compute compute) : before_(in_use) {
  in_use = compute;
}

ComputeScope::~ComputeScope() {
  in_use = before_;
}

Compute ComputeScope::current() {
  return in_use;
}

bool has_fast_bf16() {
  return cpu::has_fast_product() && cpu::levels().front()->product_bf16 != nullptr;
}

at::Tensor rounded(const at::Tensor& x, Compute compute) {
  if (!x.defined() || !is_half(compute)) return x;
  const at::Tensor values = x.contiguous();
  at::Tensor out = at::empty(values.sizes(), values.options());
  round_into(values, out, compute);
  return out;
}

void round_(at::Tensor& x, Compute compute) {
  if (is_half(compute)) round_into(x, x, compute);
}

}  // namespace stretto::kernels
