#include "image/resize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "image/row_loops.h"
#include "image/transform.h"

namespace stretto::image {
namespace {

constexpr double kKeys = -0.5;

double support_of(Filter filter) {
  return filter == Filter::kArea ? 0.5 : filter == Filter::kBilinear ? 1 : 2;
}

double weight_at(Filter filter, double distance) {
  if (filter == Filter::kArea) return distance > -0.5 && distance <= 0.5 ? 1 : 0;
  const double d = std::abs(distance);
  if (filter == Filter::kBilinear) return std::max(0.0, 1 - d);
  if (d < 1) return ((kKeys + 2) * d - (kKeys + 3)) * d * d + 1;
  return d < 2 ? (((d - 5) * d + 8) * d - 4) * kKeys : 0;
}

/// Which pixels of a line make those of another one, and how much each of them counts.
struct Weights {
  std::vector<int64_t> first;    ///< [outputs]
  std::vector<int64_t> count;    ///< [outputs]
  std::vector<int32_t> weights;  ///< [outputs, stride], in units of 2^-kFractionBits
  int64_t stride = 0;
};

Weights weights_for(int64_t from, int64_t to, Filter filter) {
  const double step = static_cast<double>(from) / static_cast<double>(to);
  const double widening = std::max(step, 1.0);
  const double support = support_of(filter) * widening;
  Weights all{.stride = static_cast<int64_t>(std::ceil(support)) * 2 + 1};
  all.weights.resize(static_cast<size_t>(to * all.stride));
  std::vector<double> exact(static_cast<size_t>(all.stride));
  for (int64_t out = 0; out < to; ++out) {
    const double centre = (static_cast<double>(out) + 0.5) * step;
    const auto first = std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5), 0);
    const auto end = std::min<int64_t>(static_cast<int64_t>(centre + support + 0.5), from);
    double sum = 0;
    for (int64_t i = first; i < end; ++i) {
      const double weight =
          weight_at(filter, (static_cast<double>(i) - centre + 0.5) * (1 / widening));
      exact[static_cast<size_t>(i - first)] = weight;
      sum += weight;
    }
    for (int64_t i = 0; i < end - first; ++i) {
      const double weight = exact[static_cast<size_t>(i)] / (sum == 0 ? 1 : sum) *
                            static_cast<double>(1 << kFractionBits);
      all.weights[static_cast<size_t>(out * all.stride + i)] =
          static_cast<int32_t>(weight < 0 ? weight - 0.5 : weight + 0.5);
    }
    all.first.push_back(first);
    all.count.push_back(end - first);
  }
  return all;
}

/// Transposes any number of columns of kBlock rows.
/// @param to  [columns, kBlock]
void columns_of(const uint8_t* rows, int64_t stride, int64_t columns, uint8_t* to) {
  int64_t x = 0;
  for (; x + kBlock <= columns; x += kBlock) {
    row_loops().transpose(rows + x, stride, to + x * kBlock, kBlock);
  }
  for (; x < columns; ++x) {
    for (int64_t y = 0; y < kBlock; ++y) to[x * kBlock + y] = rows[y * stride + x];
  }
}

/// The other way round, of which so many rows are wanted.
void rows_of(const uint8_t* columns, int64_t width, int64_t num_rows, uint8_t* rows) {
  int64_t x = 0;
  for (; num_rows == kBlock && x + kBlock <= width; x += kBlock) {
    row_loops().transpose(columns + x * kBlock, kBlock, rows + x, width);
  }
  for (; x < width; ++x) {
    for (int64_t y = 0; y < num_rows; ++y) rows[y * width + x] = columns[x * kBlock + y];
  }
}

/// The horizontal pass, of kBlock rows at once: their pixels of one column lie side by side.
class HorizontalPass {
 public:
  HorizontalPass(const Weights& weights, int64_t columns)
      : weights_(weights),
        columns_(columns),
        padded_(static_cast<size_t>(kBlock * columns)),
        in_(static_cast<size_t>(kBlock * columns)),
        out_(static_cast<size_t>(kBlock) * weights.first.size()) {}

  /// @param rows  [num_rows, columns]
  /// @param out   [num_rows, outputs]
  void resize(const uint8_t* rows, int64_t stride, int64_t num_rows, uint8_t* out) {
    if (num_rows < kBlock) {
      for (int64_t y = 0; y < num_rows; ++y) {
        std::copy_n(rows + y * stride, columns_, padded_.data() + y * columns_);
      }
      rows = padded_.data();
      stride = columns_;
    }
    columns_of(rows, stride, columns_, in_.data());
    const RowLoops& loops = row_loops();
    for (size_t x = 0; x < weights_.first.size(); ++x) {
      loops.weigh(in_.data() + kBlock * weights_.first[x], kBlock,
                  weights_.weights.data() + static_cast<int64_t>(x) * weights_.stride,
                  weights_.count[x], out_.data() + static_cast<int64_t>(x) * kBlock);
    }
    rows_of(out_.data(), static_cast<int64_t>(weights_.first.size()), num_rows, out);
  }

 private:
  const Weights& weights_;
  const int64_t columns_;
  std::vector<uint8_t> padded_, in_, out_;
};

/// One row of the vertical pass.
/// @param rows  [count, width], the first of them
void weigh_rows(const uint8_t* rows, int64_t stride, int64_t width, const int32_t* weights,
                int64_t count, uint8_t* out) {
  const RowLoops& loops = row_loops();
  if (width < kBlock) {
    std::vector<uint8_t> padded(static_cast<size_t>(count * kBlock)), sums(kBlock);
    for (int64_t t = 0; t < count; ++t) {
      std::copy_n(rows + t * stride, width, padded.data() + t * kBlock);
    }
    loops.weigh(padded.data(), kBlock, weights, count, sums.data());
    std::copy_n(sums.data(), width, out);
    return;
  }
  for (int64_t x = 0; x < width; x += kBlock) {
    const int64_t begin = std::min(x, width - kBlock);  // the last block overlaps the one before
    loops.weigh(rows + begin, stride, weights, count, out + begin);
  }
}

/// All rows of the vertical pass.
/// @param rows  those that `weights` count from number `first_row` on
void resize_columns(const uint8_t* rows, int64_t stride, int64_t width, int64_t first_row,
                    const Weights& weights, uint8_t* out) {
  for (size_t y = 0; y < weights.first.size(); ++y) {
    const auto row = static_cast<int64_t>(y);
    weigh_rows(rows + (weights.first[y] - first_row) * stride, stride, width,
               weights.weights.data() + row * weights.stride, weights.count[y], out + row * width);
  }
}

/// All rows of the horizontal pass.
/// @param rows  [num_rows, columns]
void resize_rows(const uint8_t* rows, int64_t stride, int64_t columns, int64_t num_rows,
                 const Weights& weights, uint8_t* out) {
  const auto width = static_cast<int64_t>(weights.first.size());
  if (columns == width) {
    for (int64_t y = 0; y < num_rows; ++y) std::copy_n(rows + y * stride, width, out + y * width);
    return;
  }
  HorizontalPass pass(weights, columns);
  for (int64_t y = 0; y < num_rows; y += kBlock) {
    pass.resize(rows + y * stride, stride, std::min(kBlock, num_rows - y), out + y * width);
  }
}

/// As Pillow 13 does: the vertical pass comes first where it makes the picture so much smaller.
/// Bytes between the passes are rounded and cut, so that the order matters.
bool is_vertical_first(const Region& region, int64_t height, int64_t width) {
  const int64_t fewer_rows = region.height - height;
  return fewer_rows > 0 && fewer_rows > 2 * (region.width - width);
}

void resize_plane(std::span<const uint8_t> plane, int64_t plane_width, const Region& region,
                  const Weights& across, const Weights& down, std::span<uint8_t> out) {
  const auto width = static_cast<int64_t>(across.first.size());
  const auto height = static_cast<int64_t>(down.first.size());
  const auto row_of = [&](int64_t y) {
    return plane.data() + (region.top + y) * plane_width + region.left;
  };
  if (is_vertical_first(region, height, width)) {
    std::vector<uint8_t> rows(static_cast<size_t>(height * region.width));
    resize_columns(row_of(0), plane_width, region.width, 0, down, rows.data());
    resize_rows(rows.data(), region.width, region.width, height, across, out.data());
    return;
  }
  const int64_t first_row = down.first.front();
  const int64_t end_row = down.first.back() + down.count.back();
  std::vector<uint8_t> rows(static_cast<size_t>((end_row - first_row) * width));
  resize_rows(row_of(first_row), plane_width, region.width, end_row - first_row, across,
              rows.data());
  resize_columns(rows.data(), width, width, first_row, down, out.data());
}

}  // namespace

Image resized(const Image& image, const Region& region, int64_t height, int64_t width,
              Filter filter) {
  require_within(region, image);
  if (height < 1 || width < 1) {
    throw std::invalid_argument("resized: " + std::to_string(height) + " x " +
                                std::to_string(width) + " pixels");
  }
  if (region.height == height && region.width == width) return cropped(image, region);
  const Weights across = weights_for(region.width, width, filter);
  const Weights down = weights_for(region.height, height, filter);
  Image result = make_image(height, width);
  for (int64_t c = 0; c < kChannels; ++c) {
    resize_plane(image.plane(c), image.width, region, across, down, result.plane(c));
  }
  return result;
}

Image resized(const Image& image, int64_t height, int64_t width, Filter filter) {
  return resized(image, all_of(image), height, width, filter);
}

Region with_short_side(int64_t height, int64_t width, int64_t side) {
  if (height <= width) return {.height = side, .width = side * width / height};
  return {.height = side * height / width, .width = side};
}

}  // namespace stretto::image
