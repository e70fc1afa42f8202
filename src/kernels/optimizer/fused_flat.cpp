#include <ATen/Parallel.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/cpu/table.h"
#include "kernels/fused.h"

namespace stretto::kernels::fused {

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
