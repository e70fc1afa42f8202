#include "kernels/gemm/gemm.h"

#include <ATen/Parallel.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <atomic>

#include "kernels/cpu/table.h"
#include "kernels/gemm/large_pages.h"
#include "kernels/gemm/row_items.h"
#include "kernels/rounding.h"

namespace stretto::kernels::gemm {
namespace {

constexpr int64_t kColumns = 1024;    // of B in one item, for which a block of A is copied once
constexpr int64_t kColumnUnit = 128;  // a multiple of every level's panel
constexpr int64_t kFewRows = 48;      // of A; their items have columns in smaller units
constexpr int64_t kFetchedRows = 5;   // of A; fewer do nothing but wait for B in any case
constexpr int64_t kFewRowsUnit = 64;  // a multiple of every level's panel
constexpr int64_t kWidePanel = 32;    // of the levels with sixteen lanes
constexpr int64_t kGrain = 1 << 15;   // numbers to move or to add that are worth a thread

std::atomic<bool>& taken_always() {
  static std::atomic<bool> always = false;
  return always;
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

/// The left factor of a product, as items see it: one matrix, or for each part p of a gathered
/// matrix the transpose of that part.
struct LeftFactor {
  cpu::MatrixView a;
  int64_t rows;
  cpu::Lines lines = {};
  int64_t parts = 1;

  /// What an item at (row, depth) multiplies.
  void put(cpu::ProductItem& item, int64_t part_index, int64_t row, int64_t depth) const {
    item.lines = lines;
    if (lines.table == nullptr) {
      item.a = part(a, row, depth);
    } else if (lines.transposed) {
      item.a = part(a, row, 0);
      item.lines.table += depth * lines.step + part_index;
    } else {
      item.a = a;
      item.lines.table += row * lines.step;
      item.lines.begin = depth;
    }
  }
};

struct Target {
  float* data;
  int64_t row, part = 0;  // distances
};

/// Columns of an item: as many as fit in kColumns evenly, and fewer when there are too few rows for
/// all threads. With few rows, reading B takes the time: each thread then reads the same number of
/// columns, and no two threads read the same ones.
int64_t columns_of_item(int64_t rows, int64_t parts, int64_t columns) {
  const int64_t threads = available_threads();
  const int64_t of_rows = divide_up(rows, 2 * RowItems::kUnit) * parts;
  int64_t blocks = std::max(divide_up(columns, kColumns), divide_up(threads, of_rows));
  const bool is_few = rows <= kFewRows;
  if (is_few) blocks = divide_up(blocks, threads) * threads;
  const int64_t unit = is_few ? kFewRowsUnit : kColumnUnit;
  return std::clamp(divide_up(divide_up(columns, blocks), unit) * unit, unit, kColumns);
}

/// Whether a product reads B as fast where it lies: its panels are whole, and a block of depth
/// stays in the second cache, with the rows of C that are summed beside it. Steps of depth lie a
/// row apart there, and fall into few sets of the first cache. A step of sixteen lanes computes
/// long enough to hide that; with eight, a product had 0.8 to 0.95 of its speed (Zen 3).
bool lies_well(const Operand& b, int64_t rows, Compute compute) {
  if (b.transposed || is_half(compute) || rows <= kFewRows || b.columns() == 0) return false;
  if (cpu::table().panel < kWidePanel) return false;
  const int64_t step = b.matrix.stride(0), block = std::min(b.rows(), cpu::kProductDepth) * step;
  const int64_t most = int64_t{1} << (rows <= cpu::kProductRows ? 17 : 16);  // numbers
  return b.columns() % cpu::table().panel == 0 && step >= b.columns() && block <= most;
}

/// One product, cut into items that any thread may take. Any cut gives the same result.
struct Product {
  const LeftFactor& a;
  const Packed& b;
  const float* shift;  // null: none
  bool add;
  Target out;
  int64_t item_columns = columns_of_item(a.rows, a.parts, b.columns());
  int64_t column_blocks = divide_up(b.columns(), item_columns) * a.parts;
  RowItems row_items{a.rows, column_blocks, cpu::kProductRows, available_threads()};

  int64_t items() const { return row_items.count() * column_blocks; }

  /// What is read behind the columns of an item at this depth. Behind the last ones, something that
  /// is there already.
  const float* behind(int64_t depth, int64_t column) const {
    if (depth + cpu::kProductDepth < b.depth()) return b.block(depth + cpu::kProductDepth, column);
    const int64_t next = column + item_columns;
    return b.block(0, next < b.columns() ? next : column);
  }

  void multiply_item(int64_t i) const {
    const int64_t row = row_items.first(i / column_blocks);
    const int64_t part_index = i % column_blocks % a.parts;
    const int64_t column = i % column_blocks / a.parts * item_columns;
    const int64_t height = row_items.first(i / column_blocks + 1) - row;
    const int64_t width = std::min(item_columns, b.columns() - column);
    const bool is_fetched = a.rows >= kFetchedRows && a.rows <= kFewRows;
    const auto product = b.holds_pairs() ? cpu::table().product_bf16 : cpu::table().product;
    float* corner = out.data + row * out.row + part_index * out.part + column;
    for (int64_t k = 0; k < b.depth(); k += cpu::kProductDepth) {
      cpu::ProductItem item{.a = {},
                            .b = b.block(k, column),
                            .b_step = b.step(),
                            .rows = height,
                            .columns = width,
                            .depth = std::min(cpu::kProductDepth, b.depth() - k),
                            .c = corner,
                            .c_row = out.row,
                            .bias = k == 0 && shift != nullptr ? shift + column : nullptr,
                            .add = add || k > 0,
                            .compute = b.compute(),
                            .next = is_fetched ? behind(k, column) : nullptr};
      a.put(item, part_index, row, k);
      product(item);
    }
    if (!is_half(b.compute()) || add) return;
    // Here the item is still in the cache.
    for (int64_t r = 0; r < height; ++r)
      cpu::table().round(corner + r * out.row, corner + r * out.row, width, b.compute());
  }
};

void multiply_all(const LeftFactor& a, const Packed& b, const at::Tensor& bias, bool add,
                  const Target& out) {
  if (a.rows == 0 || b.columns() == 0) return;
  const at::Tensor shifts = rounded(bias, b.compute());
  const float* shift = bias.defined() ? shifts.const_data_ptr<float>() : nullptr;
  const Product product{.a = a, .b = b, .shift = shift, .add = add, .out = out};
  at::parallel_for(0, product.items(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) product.multiply_item(i);
  });
}

}  // namespace

Packed::Packed(int64_t depth, int64_t columns, Compute compute, const at::TensorOptions& options,
               Pages pages)
    : depth_(depth),
      columns_(columns),
      padded_(divide_up(columns, cpu::table().panel) * cpu::table().panel),
      compute_(compute),
      pairs_(compute == Compute::kBf16 && cpu::table().product_bf16 != nullptr),
      values_(pages == Pages::kLarge ? in_large_pages({words(depth_) * padded_}, options)
                                     : at::empty({words(depth_) * padded_}, options)) {}

template <class Fill>
void Packed::for_each_panel(const Fill& fill) {
  float* to = values_.data_ptr<float>();
  const int64_t blocks = divide_up(depth_, cpu::kProductDepth);
  const int64_t panels = padded_ / cpu::table().panel;
  const int64_t numbers = std::min(cpu::kProductDepth, depth_) * cpu::table().panel;
  const int64_t grain = divide_up(kGrain, std::max<int64_t>(numbers, 1));
  at::parallel_for(0, blocks * panels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i / panels * cpu::kProductDepth, panel = i % panels;
      fill({.b = {},
            .depth = std::min(cpu::kProductDepth, depth_ - first),
            .columns = columns_,
            .begin = panel,
            .end = panel + 1,
            .compute = compute_,
            .out = to + words(first) * padded_},
           first);
    }
  });
}

Packed::Packed(const Operand& b, Compute compute, Pages pages)
    : Packed(b.rows(), b.columns(), compute, b.matrix.options(), pages) {
  const cpu::MatrixView from = view_of(b);
  const auto pack = pairs_ ? cpu::table().pack_bf16 : cpu::table().pack;
  for_each_panel([&](cpu::PackItem item, int64_t first) {
    item.b = part(from, first, 0);
    pack(item);
  });
}

Packed Packed::of_blocks(const at::Tensor& blocks, const std::vector<Combination>& parts) {
  Packed packed(static_cast<int64_t>(parts.size()) * blocks.size(1), blocks.size(2), Compute::kFp32,
                blocks.options());
  const cpu::MatrixView from{blocks.const_data_ptr<float>(), blocks.stride(1), blocks.stride(2)};
  packed.for_each_panel([&](cpu::PackItem item, int64_t first) {
    item.b = from;
    cpu::table().pack_mixed(
        {.item = item,
         .lines = {.width = blocks.size(1), .begin = first, .parts = parts.data()},
         .block = blocks.stride(0)});
  });
  return packed;
}

Packed Packed::of_lines(const at::Tensor& matrix, const at::Tensor& table,
                        const Combination& combination) {
  Packed packed(table.size(0), matrix.size(1), Compute::kFp32, matrix.options());
  const cpu::MatrixView from = view_of({matrix});
  const int64_t step = table.size(1);
  const int32_t* entries = table.const_data_ptr<int32_t>();
  packed.for_each_panel([&](cpu::PackItem item, int64_t first) {
    item.b = from;
    cpu::table().pack_mixed(
        {.item = item,
         .lines = {.table = entries + first * step, .step = step, .parts = &combination},
         .block = 0});
  });
  return packed;
}

Packed::Packed(const Operand& b, Compute compute, int64_t step)
    : depth_(b.rows()),
      columns_(b.columns()),
      padded_(b.columns()),
      compute_(compute),
      pairs_(false),
      values_(b.matrix),
      step_(step) {}

Packed Packed::for_one_product(const Operand& b, int64_t rows, Compute compute) {
  return lies_well(b, rows, compute) ? Packed(b, compute, b.matrix.stride(0)) : Packed(b, compute);
}

const float* Packed::block(int64_t depth_begin, int64_t column) const {
  if (step_ != 0) return values_.const_data_ptr<float>() + depth_begin * step_ + column;
  const int64_t depth = std::min(cpu::kProductDepth, depth_ - depth_begin);
  return values_.const_data_ptr<float>() + words(depth_begin) * padded_ + column * words(depth);
}

void multiply(const Operand& a, const Packed& b, const at::Tensor& bias, bool add,
              at::Tensor& out) {
  if (b.depth() == 0 && !add) out.zero_();
  multiply_all({.a = view_of(a), .rows = a.rows()}, b, bias, add,
               {.data = out.data_ptr<float>(), .row = out.stride(0)});
}

void multiply_gathered(const Gathered& a, const Packed& b, const at::Tensor& bias, bool add,
                       at::Tensor& out) {
  if (b.depth() == 0 && !add) out.zero_();
  const cpu::Lines lines{
      .table = a.table.const_data_ptr<int32_t>(), .step = a.parts(), .width = a.width()};
  multiply_all({.a = view_of({a.matrix}), .rows = a.rows(), .lines = lines}, b, bias, add,
               {.data = out.data_ptr<float>(), .row = out.stride(0)});
}

void multiply_transposed(const Gathered& a, const Packed& b, at::Tensor& out) {
  if (b.depth() == 0) out.zero_();
  const cpu::Lines lines{
      .table = a.table.const_data_ptr<int32_t>(), .step = a.parts(), .transposed = true};
  multiply_all(
      {.a = view_of({a.matrix, true}), .rows = a.width(), .lines = lines, .parts = a.parts()}, b,
      {}, false, {.data = out.data_ptr<float>(), .row = out.stride(0), .part = out.stride(1)});
}

at::Tensor product(const Operand& a, const Operand& b, const at::Tensor& bias, Compute compute) {
  if (is_taken(a.rows(), a.columns(), b.columns())) {
    at::Tensor out = at::empty({a.rows(), b.columns()}, a.matrix.options());
    multiply(a, Packed::for_one_product(b, a.rows(), compute), bias, false, out);
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

bool take_always(bool always) {
  return taken_always().exchange(always);
}

bool is_taken_always() {
  return taken_always().load(std::memory_order_relaxed);
}

bool is_taken(int64_t rows, int64_t depth, int64_t columns) {
  constexpr int64_t kRows = 48, kDepth = 32, kWidth = 32;
  if (is_taken_always()) return true;
  return cpu::has_fast_product() && rows >= kRows && depth >= kDepth && columns >= kWidth;
}

bool takes_gathered() {
  return cpu::has_fast_product() || is_taken_always();
}

at::Tensor column_sums(const at::Tensor& x) {
  constexpr int64_t kLeast = 64;  // columns: whole lines of the cache, and several at a time
  const int64_t grain = std::max(kLeast, divide_up(kGrain, std::max<int64_t>(x.size(0), 1)));
  at::Tensor out = at::empty({x.size(1)}, x.options());
  const float* from = x.const_data_ptr<float>();
  float* to = out.data_ptr<float>();
  at::parallel_for(0, x.size(1), grain, [&](int64_t begin, int64_t end) {
    cpu::table().column_sums(from, x.size(0), x.size(1), begin, end, to);
  });
  return out;
}

}  // namespace stretto::kernels::gemm
