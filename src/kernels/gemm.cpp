#include "kernels/gemm.h"

#include <ATen/Parallel.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <atomic>

#include "kernels/cpu/table.h"
#include "kernels/rounding.h"

namespace stretto::kernels::gemm {
namespace {

constexpr int64_t kColumns = 1024;      // of B in one item, for which a block of A is copied once
constexpr int64_t kRowUnit = 12;        // a multiple of every level's tile
constexpr int64_t kItemsPerThread = 4;  // so that uneven items cost little

std::atomic<bool>& taken_always() {
  static std::atomic<bool> always = false;
  return always;
}

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

/// As libtorch takes it.
at::Tensor plain(const Operand& x, Compute compute) {
  const at::Tensor values = rounded(x.matrix, compute);
  return x.transposed ? values.t() : values;
}

/// Rows of an item. Any choice gives the same result; this one gives each thread a few items, and
/// one thread large ones.
int64_t rows_of_item(int64_t rows, int64_t column_blocks) {
  if (at::get_num_threads() == 1 || at::in_parallel_region()) return cpu::kProductRows;
  const int64_t wanted = kItemsPerThread * at::get_num_threads();
  const int64_t fair = divide_up(rows * column_blocks, wanted);
  return std::clamp(divide_up(fair, kRowUnit) * kRowUnit, 2 * kRowUnit, cpu::kProductRows);
}

}  // namespace

Packed::Packed(const Operand& b, Compute compute)
    : depth_(b.rows()),
      columns_(b.columns()),
      padded_(divide_up(b.columns(), cpu::table().panel) * cpu::table().panel),
      compute_(compute),
      pairs_(compute == Compute::kBf16 && cpu::table().product_bf16 != nullptr),
      values_(at::empty({words(depth_) * padded_}, b.matrix.options())) {
  const cpu::MatrixView from = view_of(b);
  float* to = values_.data_ptr<float>();
  const int64_t blocks = divide_up(depth_, cpu::kProductDepth);
  const int64_t panels = padded_ / cpu::table().panel;
  const auto pack = pairs_ ? cpu::table().pack_bf16 : cpu::table().pack;
  at::parallel_for(0, blocks * panels, 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i / panels * cpu::kProductDepth, panel = i % panels;
      pack({.b = part(from, first, 0),
            .depth = std::min(cpu::kProductDepth, depth_ - first),
            .columns = columns_,
            .begin = panel,
            .end = panel + 1,
            .compute = compute_,
            .out = to + words(first) * padded_});
    }
  });
}

const float* Packed::block(int64_t depth_begin, int64_t column) const {
  const int64_t depth = std::min(cpu::kProductDepth, depth_ - depth_begin);
  return values_.const_data_ptr<float>() + words(depth_begin) * padded_ + column * words(depth);
}

void multiply(const Operand& a, const Packed& b, const at::Tensor& bias, bool add,
              at::Tensor& out) {
  const int64_t rows = a.rows(), columns = b.columns();
  if (b.depth() == 0 && !add) out.zero_();
  const cpu::MatrixView from = view_of(a);
  const at::Tensor shifts = rounded(bias, b.compute());
  const float* shift = bias.defined() ? shifts.const_data_ptr<float>() : nullptr;
  float* to = out.data_ptr<float>();
  const auto product = b.holds_pairs() ? cpu::table().product_bf16 : cpu::table().product;
  const bool rounds = is_half(b.compute()) && !add;
  const int64_t column_blocks = divide_up(columns, kColumns);
  const int64_t item_rows = rows_of_item(rows, column_blocks);
  const int64_t items = divide_up(rows, item_rows) * column_blocks;
  at::parallel_for(0, items, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / column_blocks * item_rows, column = i % column_blocks * kColumns;
      const int64_t height = std::min(item_rows, rows - row);
      const int64_t width = std::min(kColumns, columns - column);
      float* corner = to + row * out.stride(0) + column;
      for (int64_t k = 0; k < b.depth(); k += cpu::kProductDepth)
        product({.a = part(from, row, k),
                 .b = b.block(k, column),
                 .rows = height,
                 .columns = width,
                 .depth = std::min(cpu::kProductDepth, b.depth() - k),
                 .c = corner,
                 .c_row = out.stride(0),
                 .bias = k == 0 && shift != nullptr ? shift + column : nullptr,
                 .add = add || k > 0,
                 .compute = b.compute()});
      // Here the item is still in the cache.
      for (int64_t r = 0; r < height && rounds; ++r) {
        float* line = corner + r * out.stride(0);
        cpu::table().round(line, line, width, b.compute());
      }
    }
  });
}

at::Tensor product(const Operand& a, const Operand& b, const at::Tensor& bias, Compute compute) {
  if (is_taken(a.rows(), a.columns(), b.columns())) {
    at::Tensor out = at::empty({a.rows(), b.columns()}, a.matrix.options());
    multiply(a, Packed(b, compute), bias, false, out);
    return out;
  }
  const at::Tensor left = plain(a, compute), right = plain(b, compute);
  at::Tensor out =
      bias.defined() ? at::addmm(rounded(bias, compute), left, right) : at::mm(left, right);
  round_(out, compute);
  return out;
}

void multiply_by_libtorch(const Operand& a, const Operand& b, bool add, Compute compute,
                          at::Tensor& out) {
  const at::Tensor left = plain(a, compute), right = plain(b, compute);
  if (add)
    out.addmm_(left, right);
  else
    at::mm_out(out, left, right);
}

void take_always(bool always) {
  taken_always().store(always);
}

bool is_taken(int64_t rows, int64_t depth, int64_t columns) {
  constexpr int64_t kRows = 48, kDepth = 32, kWidth = 32;
  if (taken_always().load(std::memory_order_relaxed)) return true;
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
