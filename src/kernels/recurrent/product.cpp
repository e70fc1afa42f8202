#include "kernels/recurrent/product.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/cpu/table.h"

namespace stretto::kernels {
namespace {

/// Rounded rows of a step. A thread has one for all of its steps, which allocate nothing then.
struct RoundedStep {
  std::vector<int8_t> codes;
  std::vector<float> scales;
  std::vector<int32_t> sums;

  cpu::RoundedRows rows_for(int64_t count, const QuantisedMatrix& matrix) {
    const int64_t depth = matrix.steps() * QuantisedMatrix::kStep;
    const auto fit = [](auto& numbers, int64_t size) {
      if (numbers.size() < static_cast<size_t>(size)) numbers.resize(static_cast<size_t>(size));
    };
    fit(codes, count * depth);
    fit(scales, count);
    fit(sums, count * matrix.groups());
    return {.codes = codes.data(),
            .scales = scales.data(),
            .sums = sums.data(),
            .inputs = matrix.inputs(),
            .depth = depth,
            .group = matrix.group(),
            .groups = matrix.groups()};
  }
};

/// Each thread of the team rounds the rows for itself: it is little beside their product, and saves
/// waiting for each other.
void multiply_by_codes(const StepRows<const float>& a, const StoodFor& b, const float* bias,
                       const StepRows<float>& c, const ThreadTeam& team) {
  constexpr int64_t kPanel = QuantisedMatrix::kPanel;
  const QuantisedMatrix& matrix = *b.matrix;
  const cpu::QuantisedLoops& loops = cpu::table().quantised;
  const ThreadTeam::Range range = team.range((b.count + kPanel - 1) / kPanel);
  const int64_t column = range.begin * kPanel;
  const int64_t width = std::min(range.end * kPanel, b.count) - column;
  if (width <= 0) return;
  thread_local RoundedStep step;
  for (int64_t row = 0; row < a.count; row += cpu::kQuantisedRows) {
    const int64_t height = std::min(cpu::kQuantisedRows, a.count - row);
    const cpu::RoundedRows rounded = step.rows_for(height, matrix);
    loops.round_rows(a.data + row * a.stride, a.stride, 0, height, rounded);
    loops.product({.x = rounded.codes,
                   .x_scales = rounded.scales,
                   .x_sums = rounded.sums,
                   .rows = height,
                   .depth = rounded.depth,
                   .group = rounded.group,
                   .groups = rounded.groups,
                   .weights = matrix.codes(),
                   .scales = matrix.scales(),
                   .zeros = matrix.zeros(),
                   .zero = matrix.zero(),
                   .bits = matrix.bits(),
                   .begin = b.first + column,
                   .columns = width,
                   .out = c.data + row * c.stride + column,
                   .out_row = c.stride,
                   .bias = bias == nullptr ? nullptr : bias + column,
                   .empty = matrix.empty()});
  }
}

/// Whether a product waits for a factor that no cache keeps until the next step, and has rows to
/// multiply meanwhile.
bool reads_memory(int64_t rows, const gemm::Packed& b) {
  constexpr int64_t kFewest = 5, kMost = 48, kNumbers = int64_t{1} << 20;
  return rows >= kFewest && rows <= kMost && b.depth() * b.columns() >= kNumbers;
}

/// What is read behind the columns of this depth. Behind the last depth, something that is there.
const float* behind(const gemm::Packed& b, int64_t depth, int64_t column) {
  const int64_t next = depth + cpu::kProductDepth;
  return b.block(next < b.depth() ? next : 0, column);
}

}  // namespace

StepFactor::StepFactor(const at::Tensor& weight, Compute compute)
    : codes_(stood_for(weight)), columns_(weight.size(0)) {
  if (!codes_) packed_.emplace(gemm::Operand{weight, true}, compute);
}

void multiply_step(const StepRows<const float>& a, const StepFactor& b, const float* bias,
                   const StepRows<float>& c, const ThreadTeam& team) {
  if (b.codes()) return multiply_by_codes(a, *b.codes(), bias, c, team);
  multiply_step(a, *b.packed(), bias, c, team);
}

void multiply_step(const StepRows<const float>& a, const gemm::Packed& b, const float* bias,
                   const StepRows<float>& c, const ThreadTeam& team) {
  const cpu::Table& loops = cpu::table();
  const auto product = b.holds_pairs() ? loops.product_bf16 : loops.product;
  const int64_t panels = (b.columns() + loops.panel - 1) / loops.panel;
  const ThreadTeam::Range range = team.range(panels);
  const int64_t column = range.begin * loops.panel;
  const int64_t width = std::min(range.end * loops.panel, b.columns()) - column;
  if (width <= 0) return;
  const bool is_fetched = reads_memory(a.count, b);
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
               .compute = b.compute(),
               .next = is_fetched ? behind(b, k, column) : nullptr});
    for (int64_t r = 0; r < height && is_half(b.compute()); ++r)
      loops.round(corner + r * c.stride, corner + r * c.stride, width, b.compute());
  }
}

}  // namespace stretto::kernels
