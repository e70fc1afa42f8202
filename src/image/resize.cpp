#include "image/resize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "image/transform.h"

namespace stretto::image {
namespace {

// Sums of products of bytes and weights stay below 2^31: weights of Keys' cubic add up to 1.2.
constexpr int kFractionBits = 32 - 8 - 2;
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

uint8_t clipped(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kFractionBits, 0, 255));
}

constexpr int32_t kHalf = 1 << (kFractionBits - 1);

/// @param row  of `weights.first` and `count`
void resize_row(const uint8_t* row, const Weights& weights, uint8_t* out) {
  for (size_t x = 0; x < weights.first.size(); ++x) {
    const int32_t* weight = weights.weights.data() + static_cast<int64_t>(x) * weights.stride;
    const uint8_t* pixel = row + weights.first[x];
    int32_t sum = kHalf;
    for (int64_t i = 0; i < weights.count[x]; ++i) sum += weight[i] * pixel[i];
    out[x] = clipped(sum);
  }
}

/// @param rows  of `width` bytes, from number `first_row` on
/// @param sums  [width], to work with
void resize_column(const uint8_t* rows, int64_t width, int64_t first_row, const Weights& weights,
                   int64_t out_row, std::vector<int32_t>& sums, uint8_t* out) {
  std::fill(sums.begin(), sums.end(), kHalf);
  const auto place = static_cast<size_t>(out_row);
  for (int64_t i = 0; i < weights.count[place]; ++i) {
    const int32_t weight = weights.weights[static_cast<size_t>(out_row * weights.stride + i)];
    const uint8_t* row = rows + (weights.first[place] + i - first_row) * width;
    for (int64_t x = 0; x < width; ++x) sums[static_cast<size_t>(x)] += weight * row[x];
  }
  for (int64_t x = 0; x < width; ++x) out[x] = clipped(sums[static_cast<size_t>(x)]);
}

void resize_plane(std::span<const uint8_t> plane, int64_t plane_width, const Region& region,
                  const Weights& across, const Weights& down, std::span<uint8_t> out) {
  const auto width = static_cast<int64_t>(across.first.size());
  const auto height = static_cast<int64_t>(down.first.size());
  const int64_t first_row = down.first.front();
  const int64_t end_row = down.first.back() + down.count.back();
  std::vector<uint8_t> rows(static_cast<size_t>((end_row - first_row) * width));
  for (int64_t y = first_row; y < end_row; ++y) {
    const uint8_t* row = plane.data() + (region.top + y) * plane_width + region.left;
    uint8_t* to = rows.data() + (y - first_row) * width;
    if (region.width == width) {
      std::copy_n(row, width, to);
    } else {
      resize_row(row, across, to);
    }
  }
  std::vector<int32_t> sums(static_cast<size_t>(width));
  for (int64_t y = 0; y < height; ++y) {
    resize_column(rows.data(), width, first_row, down, y, sums, out.data() + y * width);
  }
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
