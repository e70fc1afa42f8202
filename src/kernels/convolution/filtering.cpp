#include "kernels/convolution/filtering.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "kernels/convolution/evaluations.h"
#include "kernels/cpu/table.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/row_items.h"

namespace stretto::kernels {
namespace {

using evaluations::Chunk, evaluations::kPoints, evaluations::PointProduct;

Tiles tiles_of(const TimeWindow& window, int64_t left) {
  const at::Tensor offsets = window.offsets.values.to(at::kInt).contiguous();
  const int32_t* begins = offsets.const_data_ptr<int32_t>();
  const int64_t step = window.dilation;
  std::vector<int32_t> inputs, outputs;
  for (int64_t i = 0; i + 1 < offsets.size(0); ++i) {
    const int64_t length = begins[i + 1] - begins[i];
    const auto row = [&](int64_t t) {
      return t >= 0 && t < length ? static_cast<int32_t>(begins[i] + t) : -1;
    };
    for (int64_t phase = 0; phase < std::min(step, length); ++phase)
      for (int64_t t = phase; t < length; t += 2 * step) {
        for (int64_t j = 0; j <= window.kernel; ++j) inputs.push_back(row(t + j * step - left));
        outputs.push_back(row(t));
        outputs.push_back(row(t + step));
      }
  }
  const auto table = [](const std::vector<int32_t>& entries, int64_t width) {
    return at::tensor(entries, at::kInt).view({-1, width});
  };
  return {table(inputs, window.kernel + 1), table(outputs, 2)};
}

// An item's products of all points stay in the second cache until they are mixed.
constexpr int64_t kItemRows = 96, kItemColumns = 256;

/// Products of one shape, cut into items.
struct Items {
  int64_t rows, columns;
  int64_t column_blocks = gemm::divide_up(columns, kItemColumns);
  gemm::RowItems row_items{rows, column_blocks, kItemRows, gemm::available_threads()};

  int64_t count() const { return row_items.count() * column_blocks; }
};

struct Place {
  int64_t row, column, height, width;
};

/// call(place, matrices): each item with room for products [kItemRows, kItemColumns] of all points.
template <class Call>
void for_each_item(const Items& items, const Call& call) {
  at::parallel_for(0, items.count(), 1, [&](int64_t begin, int64_t end) {
    const std::unique_ptr<float, decltype(&std::free)> matrices(
        static_cast<float*>(
            std::aligned_alloc(64, sizeof(float) * kPoints * kItemRows * kItemColumns)),
        &std::free);
    TORCH_CHECK_WITH(OutOfMemoryError, matrices != nullptr, "[kernels] no memory for products");
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = items.row_items.first(i / items.column_blocks);
      const int64_t end_row = items.row_items.first(i / items.column_blocks + 1);
      const int64_t column = i % items.column_blocks * kItemColumns;
      call({row, column, end_row - row, std::min(kItemColumns, items.columns - column)},
           matrices.get());
    }
  });
}

float* matrix_of(float* matrices, size_t index) {
  return matrices + static_cast<int64_t>(index) * kItemRows * kItemColumns;
}

/// One item of a product with `b`: lines_at(k) is what A is put together from at depth k.
template <class LinesAt>
void multiply_item(const cpu::MatrixView& a, const gemm::Packed& b, const Place& place,
                   const LinesAt& lines_at, float* out) {
  for (int64_t k = 0; k < b.depth(); k += cpu::kProductDepth)
    cpu::table().product({.a = a,
                          .b = b.block(k, place.column),
                          .rows = place.height,
                          .columns = place.width,
                          .depth = std::min(cpu::kProductDepth, b.depth() - k),
                          .c = out,
                          .c_row = kItemColumns,
                          .bias = nullptr,
                          .add = k > 0,
                          .compute = Compute::kFp32,
                          .lines = lines_at(k)});
}

cpu::MixItem mix_of(const float* matrices, const std::vector<float>& factors, const Place& place) {
  return {.matrices = matrices,
          .count = static_cast<int64_t>(factors.size()),
          .distance = kItemRows * kItemColumns,
          .row = kItemColumns,
          .factors = factors.data(),
          .rows = place.height,
          .columns = place.width,
          .bias = nullptr,
          .out = nullptr,
          .out_row = 0,
          .lines = nullptr,
          .step = 0};
}

/// Where the two outputs of each tile go.
struct Outputs {
  const int32_t* tiles;  // [tiles, 2]
  const float* bias;     // null: none
  float* data;
  int64_t width;

  void write(int which, cpu::MixItem item, const Place& place) const {
    item.bias = bias == nullptr ? nullptr : bias + place.column;
    item.out = data + place.column;
    item.out_row = width;
    item.lines = tiles + place.row * 2 + which;
    item.step = 2;
    cpu::table().convolution.mix(item);
  }
};

/// The gradients of one chunk's taps: at each point a sum of rows of dy times a sum of rows of x.
class ChunkSlopes {
 public:
  ChunkSlopes(const Chunk& chunk, const at::Tensor& x, const Tiles& tiles)
      : first_(chunk.first),
        width_(x.size(1)),
        outputs_(tiles.outputs.const_data_ptr<int32_t>()),
        factors_(static_cast<size_t>(chunk.taps)) {
    for (int point = 0; point < kPoints; ++point) {
      if (!chunk.at(point).is_used()) continue;
      rows_.push_back(gemm::Packed::of_lines(x, tiles.inputs, chunk.rows_at(point)));
      slopes_.push_back(evaluations::outputs_at(point));
      for (size_t tap = 0; tap < factors_.size(); ++tap)
        factors_[tap].push_back(chunk.at(point).weights[tap]);
    }
  }

  /// dy [N, P] -> the chunk's columns of dweight [P, K * W].
  void write(const at::Tensor& dy, at::Tensor& dweight) const {
    const int64_t outputs = dy.size(1), row = dweight.size(1);
    const float* from = dy.const_data_ptr<float>();
    float* to = dweight.data_ptr<float>();
    for_each_item({outputs, width_}, [&](const Place& place, float* matrices) {
      for (size_t i = 0; i < rows_.size(); ++i) {
        const auto lines_at = [&](int64_t k) {
          return cpu::Lines{
              .table = outputs_ + k * 2, .step = 2, .transposed = true, .parts = &slopes_[i]};
        };
        multiply_item({from + place.row, 1, outputs}, rows_[i], place, lines_at,
                      matrix_of(matrices, i));
      }
      for (size_t tap = 0; tap < factors_.size(); ++tap) {
        cpu::MixItem item = mix_of(matrices, factors_[tap], place);
        item.out_row = row;
        item.out = to + place.row * row + (first_ + static_cast<int64_t>(tap)) * width_;
        item.out += place.column;
        cpu::table().convolution.mix(item);
      }
    });
  }

 private:
  int64_t first_, width_;
  const int32_t* outputs_;
  std::vector<gemm::Packed> rows_;           // of each point
  std::vector<Combination> slopes_;          // of each point
  std::vector<std::vector<float>> factors_;  // of each tap, of each point
};

}  // namespace

bool is_filtered(const TimeWindow& window, int64_t inputs, int64_t outputs, Compute compute) {
  constexpr int64_t kKernel = 3, kWidth = 32;
  return window.stride == 1 && window.kernel >= kKernel && inputs >= kWidth && outputs >= kWidth &&
         !is_half(compute) && gemm::takes_gathered();
}

Tiles forward_tiles(const TimeWindow& window) {
  return tiles_of(window, window.left());
}

Tiles backward_tiles(const TimeWindow& window) {
  return tiles_of(window, (window.kernel - 1) * window.dilation - window.left());
}

at::Tensor filter_rows(const at::Tensor& x, const Tiles& tiles, const at::Tensor& weight,
                       TapOrder order, const at::Tensor& bias) {
  const std::vector<PointProduct> products = evaluations::products_of(weight.size(0), order);
  std::vector<gemm::Packed> packed;
  std::vector<float> factors[2];
  for (const PointProduct& product : products) {
    packed.push_back(gemm::Packed::of_blocks(weight, product.weights));
    for (const int i : {0, 1}) factors[i].push_back(evaluations::kOutputs[i][product.point]);
  }
  at::Tensor out = at::empty({x.size(0), weight.size(2)}, x.options());
  const cpu::MatrixView rows{x.const_data_ptr<float>(), x.size(1), 1};
  const Outputs outputs{.tiles = tiles.outputs.const_data_ptr<int32_t>(),
                        .bias = bias.defined() ? bias.const_data_ptr<float>() : nullptr,
                        .data = out.data_ptr<float>(),
                        .width = out.size(1)};
  const cpu::Lines seen{.table = tiles.inputs.const_data_ptr<int32_t>(),
                        .step = tiles.inputs.size(1),
                        .width = x.size(1)};
  for_each_item({tiles.inputs.size(0), out.size(1)}, [&](const Place& place, float* matrices) {
    for (size_t i = 0; i < products.size(); ++i) {
      cpu::Lines lines = seen;
      lines.table += place.row * seen.step;
      lines.parts = products[i].rows.data();
      const auto lines_at = [&](int64_t k) {
        lines.begin = k;
        return lines;
      };
      multiply_item(rows, packed[i], place, lines_at, matrix_of(matrices, i));
    }
    for (const int i : {0, 1}) outputs.write(i, mix_of(matrices, factors[i], place), place);
  });
  return out;
}

at::Tensor filter_slopes(const at::Tensor& x, const at::Tensor& dy, const Tiles& tiles) {
  const int64_t kernel = tiles.inputs.size(1) - 1;
  const at::TensorOptions options = x.options();
  if (tiles.inputs.size(0) == 0) return at::zeros({dy.size(1), kernel * x.size(1)}, options);
  at::Tensor dweight = at::empty({dy.size(1), kernel * x.size(1)}, options);
  for (const Chunk& chunk : evaluations::chunks_of(kernel))
    ChunkSlopes(chunk, x, tiles).write(dy, dweight);
  return dweight;
}

}  // namespace stretto::kernels
