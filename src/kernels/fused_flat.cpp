#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/cpu/table.h"
#include "kernels/fused.h"

namespace stretto::kernels::fused {

void adam_step(at::Tensor& params, const at::Tensor& grads, at::Tensor& exp_avg,
               at::Tensor& exp_avg_sq, const AdamStep& step) {
  const double correction1 = 1 - std::pow(step.beta1, static_cast<double>(step.step));
  const double correction2 = 1 - std::pow(step.beta2, static_cast<double>(step.step));
  const cpu::AdamScalars scalars{
      .first = moving_average(step.beta1),
      .second = moving_average(step.beta2),
      .grad_scale = static_cast<float>(step.grad_scale),
      .coupled_decay = step.decoupled ? 0.0f : static_cast<float>(step.weight_decay),
      .shrink = step.decoupled ? static_cast<float>(1 - step.lr * step.weight_decay) : 1.0f,
      .step_size = static_cast<float>(step.lr / correction1),
      .inverse_root_correction = static_cast<float>(1 / std::sqrt(correction2)),
      .epsilon = static_cast<float>(step.epsilon)};
  float *p = params.data_ptr<float>(), *m = exp_avg.data_ptr<float>();
  float* v = exp_avg_sq.data_ptr<float>();
  const float* g = grads.const_data_ptr<float>();
  at::parallel_for(0, params.numel(), int64_t{1} << 15, [&](int64_t begin, int64_t end) {
    cpu::table().adam(p, g, m, v, begin, end, scalars);
  });
}

std::vector<double> sum_of_squares_blocks(const at::Tensor& flat) {
  constexpr int64_t kBlock = kSumOfSquaresBlock;
  const int64_t blocks = (flat.numel() + kBlock - 1) / kBlock;
  std::vector<double> sums(static_cast<size_t>(blocks));
  const float* from = flat.const_data_ptr<float>();
  at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      sums[static_cast<size_t>(i)] = cpu::table().sum_of_squares(
          from + i * kBlock, std::min(kBlock, flat.numel() - i * kBlock));
  });
  return sums;
}

double sum_of_squares(const at::Tensor& flat) {
  const std::vector<double> sums = sum_of_squares_blocks(flat);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace stretto::kernels::fused
