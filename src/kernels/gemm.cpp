#include "kernels/gemm.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "kernels/cpu/table.h"

namespace stretto::kernels::gemm {
namespace {

constexpr int64_t kColumns = 1024;      // of B in one item, for which a block of A is copied once
constexpr int64_t kRowUnit = 12;        // a multiple of every level's tile
constexpr int64_t kItemsPerThread = 4;  // so that uneven items cost little

int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

cpu::MatrixView view_of(const Operand& x) {
  const float* data = x.matrix.const_data_ptr<float>();
  const int64_t row = x.matrix.stride(0);
  return x.transposed ? cpu::MatrixView{data, 1, row} : cpu::MatrixView{data, row, 1};
}

cpu::MatrixView part(const cpu::MatrixView& x, int64_t row, int64_t column) {
  return {x.data + row * x.row + column * x.column, x.row, x.column};
}

/// Rows of an item. Any choice gives the same result; this one gives each thread a few items.
int64_t rows_of_item(int64_t rows, int64_t column_blocks) {
  const int64_t wanted = kItemsPerThread * at::get_num_threads();
  const int64_t fair = divide_up(rows * column_blocks, wanted);
  return std::clamp(divide_up(fair, kRowUnit) * kRowUnit, 2 * kRowUnit, cpu::kProductRows);
}

}  // namespace

Packed::Packed(const Operand& b)
    : depth_(b.rows()),
      columns_(b.columns()),
      padded_(divide_up(b.columns(), cpu::table().panel) * cpu::table().panel),
      values_(at::empty({depth_ * padded_}, b.matrix.options())) {
  const cpu::MatrixView from = view_of(b);
  float* to = values_.data_ptr<float>();
  const int64_t blocks = divide_up(depth_, cpu::kProductDepth);
  const int64_t panels = padded_ / cpu::table().panel;
  at::parallel_for(0, blocks * panels, 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i / panels * cpu::kProductDepth, panel = i % panels;
      cpu::table().pack(part(from, first, 0), std::min(cpu::kProductDepth, depth_ - first),
                        columns_, panel, panel + 1, to + first * padded_);
    }
  });
}

const float* Packed::block(int64_t depth_begin, int64_t column) const {
  const int64_t depth = std::min(cpu::kProductDepth, depth_ - depth_begin);
  return values_.const_data_ptr<float>() + depth_begin * padded_ + column * depth;
}

void multiply(const Operand& a, const Packed& b, const at::Tensor& bias, bool add,
              at::Tensor& out) {
  const int64_t rows = a.rows(), columns = b.columns();
  if (b.depth() == 0 && !add) out.zero_();
  const cpu::MatrixView from = view_of(a);
  const float* shift = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
  float* to = out.data_ptr<float>();
  const int64_t column_blocks = divide_up(columns, kColumns);
  const int64_t item_rows = rows_of_item(rows, column_blocks);
  const int64_t items = divide_up(rows, item_rows) * column_blocks;
  at::parallel_for(0, items, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / column_blocks * item_rows, column = i % column_blocks * kColumns;
      for (int64_t k = 0; k < b.depth(); k += cpu::kProductDepth)
        cpu::table().product({.a = part(from, row, k),
                              .b = b.block(k, column),
                              .rows = std::min(item_rows, rows - row),
                              .columns = std::min(kColumns, columns - column),
                              .depth = std::min(cpu::kProductDepth, b.depth() - k),
                              .c = to + row * out.stride(0) + column,
                              .c_row = out.stride(0),
                              .bias = k == 0 && shift != nullptr ? shift + column : nullptr,
                              .add = add || k > 0});
    }
  });
}

bool is_better(int64_t rows, int64_t depth, int64_t columns) {
  constexpr int64_t kRows = 48, kDepth = 32, kWidth = 32;
  return cpu::has_fast_product() && rows >= kRows && depth >= kDepth && columns >= kWidth;
}

at::Tensor column_sums(const at::Tensor& x) {
  constexpr int64_t kGrain = 64;
  at::Tensor out = at::empty({x.size(1)}, x.options());
  const float* from = x.const_data_ptr<float>();
  float* to = out.data_ptr<float>();
  at::parallel_for(0, x.size(1), kGrain, [&](int64_t begin, int64_t end) {
    cpu::table().column_sums(from, x.size(0), x.size(1), begin, end, to);
  });
  return out;
}

}  // namespace stretto::kernels::gemm
