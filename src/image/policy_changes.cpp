#include "image/policy_changes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <numbers>
#include <vector>

#include "image/exif.h"
#include "image/transform.h"

namespace stretto::image {
namespace {

using ByteTable = std::array<uint8_t, 256>;
using Histogram = std::array<int64_t, 256>;

constexpr int kPlaceBits = 16;        // of the fraction of a place
constexpr double kMostPlace = 32768;  // above it Pillow has floats

/// Copies pixels from the places that `source_of(x, y)` says: a number of a pixel, or -1.
template <class Source>
Image copied_from(const Image& image, const Source& source_of) {
  Image result = make_image(image.height, image.width);
  const auto size = image.plane_size();
  const uint8_t* from = image.pixels.data();
  uint8_t* to = result.pixels.data();
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x, ++to) {
      const int64_t source = source_of(x, y);
      if (source < 0) continue;
      to[0] = from[source];
      to[size] = from[source + size];
      to[2 * size] = from[source + 2 * size];
    }
  }
  return result;
}

int64_t fixed_of(double value) {
  return static_cast<int64_t>(std::floor(value * (1 << kPlaceBits) + 0.5));
}

void apply_tables(Image& image, const std::array<ByteTable, 3>& tables) {
  for (int64_t c = 0; c < kChannels; ++c) {
    const ByteTable& table = tables.at(static_cast<size_t>(c));
    for (uint8_t& pixel : image.plane(c)) pixel = table[pixel];
  }
}

template <class Function>
void map_bytes(Image& image, const Function& function) {
  ByteTable table{};
  for (size_t i = 0; i < table.size(); ++i) table[i] = function(static_cast<int>(i));
  apply_tables(image, {table, table, table});
}

ByteTable unchanged() {
  ByteTable table{};
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<uint8_t>(i);
  return table;
}

Histogram histogram_of(std::span<const uint8_t> plane) {
  Histogram counts{};
  for (const uint8_t pixel : plane) ++counts[pixel];
  return counts;
}

uint8_t byte_of(int64_t value) {
  return static_cast<uint8_t>(std::clamp<int64_t>(value, 0, 255));
}

ByteTable contrast_table(const Histogram& counts) {
  size_t low = 0, high = counts.size() - 1;
  while (low < high && counts[low] == 0) ++low;
  while (high > low && counts[high] == 0) --high;
  ByteTable table = unchanged();
  if (high <= low) return table;
  const double scale = 255.0 / static_cast<double>(high - low);
  const double offset = -static_cast<double>(low) * scale;
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = byte_of(static_cast<int64_t>(static_cast<double>(i) * scale + offset));
  }
  return table;
}

ByteTable equal_table(const Histogram& counts) {
  ByteTable table = unchanged();
  int64_t all = 0, last = 0, kinds = 0;
  for (const int64_t count : counts) {
    if (count == 0) continue;
    all += count;
    last = count;
    ++kinds;
  }
  const int64_t step = (all - last) / 255;
  if (kinds <= 1 || step == 0) return table;
  int64_t below = step / 2;
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = byte_of(below / step);
    below += counts[i];
  }
  return table;
}

/// Pillow's SMOOTH: a mean of 3 x 3 pixels, in which that of the middle counts fivefold. Pixels at
/// edges stay. A sum of 13ths never lies between two bytes.
void smooth_plane(std::span<const uint8_t> plane, int64_t height, int64_t width,
                  std::vector<uint8_t>& out) {
  out.assign(plane.begin(), plane.end());
  for (int64_t y = 1; y + 1 < height; ++y) {
    const uint8_t* above = plane.data() + (y - 1) * width;
    const uint8_t* row = above + width;
    const uint8_t* below = row + width;
    uint8_t* to = out.data() + y * width;
    for (int64_t x = 1; x + 1 < width; ++x) {
      const int sum = above[x - 1] + above[x] + above[x + 1] + row[x - 1] + 5 * row[x] +
                      row[x + 1] + below[x - 1] + below[x] + below[x + 1];
      to[x] = static_cast<uint8_t>((2 * sum + 13) / 26);
    }
  }
}

/// Python's round(value, 15).
double rounded_15(double value) {
  return std::round(value * 1e15) / 1e15;
}

Image quarter_turned(const Image& image, double degrees) {
  constexpr int kHalfTurn = 3, kClockwise = 6, kAnticlockwise = 8;  // orientations of EXIF
  return upright(image, degrees == 180 ? kHalfTurn : degrees == 90 ? kAnticlockwise : kClockwise);
}

}  // namespace

Image affine(const Image& image, const AffineMatrix& matrix) {
  const auto& [a, b, c, d, e, f] = matrix;
  const int64_t height = image.height, width = image.width;
  const auto fits = [&](int64_t x, int64_t y) {
    const double column = static_cast<double>(x), row = static_cast<double>(y);
    return std::abs(column * matrix[0] + row * matrix[1] + matrix[2]) < kMostPlace &&
           std::abs(column * matrix[3] + row * matrix[4] + matrix[5]) < kMostPlace;
  };
  const double first_x = c + a * 0.5 + b * 0.5, first_y = f + d * 0.5 + e * 0.5;
  const auto place = [&](int64_t x, int64_t y) {
    return x >= 0 && x < width && y >= 0 && y < height ? y * width + x : -1;
  };
  // Scaling has floats, too: places of fractions of 2^-16 add up to an error.
  const bool is_turned = matrix[1] != 0 || matrix[3] != 0;
  if (is_turned && fits(0, 0) && fits(width, height) && fits(0, height) && fits(width, 0)) {
    const int64_t a0 = fixed_of(a), b0 = fixed_of(b), d0 = fixed_of(d), e0 = fixed_of(e);
    const int64_t x0 = fixed_of(first_x), y0 = fixed_of(first_y);
    return copied_from(image, [&](int64_t x, int64_t y) {
      return place((x0 + a0 * x + b0 * y) >> kPlaceBits, (y0 + d0 * x + e0 * y) >> kPlaceBits);
    });
  }
  return copied_from(image, [&](int64_t x, int64_t y) {
    const double column = static_cast<double>(x), row = static_cast<double>(y);
    const double from_x = first_x + matrix[0] * column + matrix[1] * row;
    const double from_y = first_y + matrix[3] * column + matrix[4] * row;
    if (!(from_x >= 0 && from_y >= 0 && from_x < static_cast<double>(width) &&
          from_y < static_cast<double>(height))) {
      return int64_t{-1};
    }
    return place(static_cast<int64_t>(from_x), static_cast<int64_t>(from_y));
  });
}

Image sheared_x(const Image& image, double slope) {
  return affine(image, {1, slope, 0, 0, 1, 0});
}

Image sheared_y(const Image& image, double slope) {
  return affine(image, {1, 0, 0, slope, 1, 0});
}

Image translated(const Image& image, int64_t right, int64_t down) {
  return affine(image, {1, 0, -static_cast<double>(right), 0, 1, -static_cast<double>(down)});
}

Image rotated(const Image& image, double degrees) {
  const double turn = degrees - 360 * std::floor(degrees / 360);
  if (turn == 0) return image;
  if (turn == 180 || ((turn == 90 || turn == 270) && image.width == image.height)) {
    return quarter_turned(image, turn);
  }
  const double angle = -turn * (std::numbers::pi / 180);
  const double cosine = rounded_15(std::cos(angle)), sine = rounded_15(std::sin(angle));
  const double x = static_cast<double>(image.width) / 2, y = static_cast<double>(image.height) / 2;
  const double minus_sine = rounded_15(-std::sin(angle));
  return affine(image, {cosine, sine, cosine * -x + sine * -y + 0.0 + x, minus_sine, cosine,
                        minus_sine * -x + cosine * -y + 0.0 + y});
}

void change_sharpness(Image& image, double factor) {
  std::vector<uint8_t> smooth;
  for (int64_t c = 0; c < kChannels; ++c) {
    smooth_plane(image.plane(c), image.height, image.width, smooth);
    const auto plane = image.plane(c);
    for (size_t i = 0; i < plane.size(); ++i) {
      plane[i] = blended(smooth[i], plane[i], static_cast<float>(factor));
    }
  }
}

void posterize(Image& image, int bits) {
  const unsigned mask = 0xFFU << (8 - std::clamp(bits, 0, 8));
  map_bytes(image, [&](int i) { return static_cast<uint8_t>(static_cast<unsigned>(i) & mask); });
}

void solarize(Image& image, double threshold) {
  map_bytes(image, [&](int i) { return static_cast<uint8_t>(i < threshold ? i : 255 - i); });
}

void auto_contrast(Image& image) {
  std::array<ByteTable, 3> tables{};
  for (int64_t c = 0; c < kChannels; ++c) {
    tables.at(static_cast<size_t>(c)) = contrast_table(histogram_of(image.plane(c)));
  }
  apply_tables(image, tables);
}

void equalize(Image& image) {
  std::array<ByteTable, 3> tables{};
  for (int64_t c = 0; c < kChannels; ++c) {
    tables.at(static_cast<size_t>(c)) = equal_table(histogram_of(image.plane(c)));
  }
  apply_tables(image, tables);
}

}  // namespace stretto::image
