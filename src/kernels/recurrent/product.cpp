#include "kernels/recurrent/product.h"

#include <algorithm>

#include "kernels/cpu/table.h"

namespace stretto::kernels {

void multiply_step(const StepRows<const float>& a, const gemm::Packed& b, const float* bias,
                   const StepRows<float>& c, const ThreadTeam& team) {
  const cpu::Table& loops = cpu::table();
  const auto product = b.holds_pairs() ? loops.product_bf16 : loops.product;
  const int64_t panels = (b.columns() + loops.panel - 1) / loops.panel;
  const ThreadTeam::Range range = team.range(panels);
  const int64_t column = range.begin * loops.panel;
  const int64_t width = std::min(range.end * loops.panel, b.columns()) - column;
  if (width <= 0) return;
  for (int64_t row = 0; row < a.count; row += cpu::kProductRows) {
    const int64_t height = std::min(cpu::kProductRows, a.count - row);
    float* corner = c.data + row * c.stride + column;
    for (int64_t k = 0; k < b.depth(); k += cpu::kProductDepth)
      product({.a = {a.data + row * a.stride + k, a.stride, 1},
               .b = b.block(k, column),
               .rows = height,
               .columns = width,
               .depth = std::min(cpu::kProductDepth, b.depth() - k),
               .c = corner,
               .c_row = c.stride,
               .bias = k == 0 && bias != nullptr ? bias + column : nullptr,
               .add = k > 0,
               .compute = b.compute()});
    for (int64_t r = 0; r < height && is_half(b.compute()); ++r)
      loops.round(corner + r * c.stride, corner + r * c.stride, width, b.compute());
  }
}

}  // namespace stretto::kernels
