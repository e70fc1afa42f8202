#include "image/transform.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "image/row_loops.h"

namespace stretto::image {
namespace {

constexpr double kMostByte = 255;
constexpr double kSectors = 6;  // of the circle of hues

/// A place behind an end of 0 … size - 1, mirrored at the end.
int64_t reflected(int64_t place, int64_t size) {
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1);
  const int64_t within = (place % period + period) % period;
  return std::min(within, period - within);
}

struct Planes {
  explicit Planes(Image& image)
      : red(image.plane(0)), green(image.plane(1)), blue(image.plane(2)) {}
  size_t size() const { return red.size(); }
  uint8_t grey(size_t i) const { return grey_of(red[i], green[i], blue[i]); }

  std::span<uint8_t> red, green, blue;
};

void require_numbers(const char* caller, size_t numbers, int64_t height, int64_t width) {
  if (std::cmp_equal(numbers, kChannels * height * width)) return;
  throw std::invalid_argument(std::string(caller) + ": room for " + std::to_string(numbers) +
                              " numbers, and " + std::to_string(kChannels * height * width) +
                              " pixels");
}

/// Colours in [0, 1] with the hue turned.
std::array<double, 3> turned(const std::array<double, 3>& rgb, double turn) {
  const auto [least, most] = std::minmax_element(rgb.begin(), rgb.end());
  const double value = *most, chroma = *most - *least;
  if (chroma == 0) return rgb;
  const auto sector = static_cast<size_t>(most - rgb.begin());
  const double within = (rgb[(sector + 1) % 3] - rgb[(sector + 2) % 3]) / chroma;
  double hue = (2 * static_cast<double>(sector) + within) / kSectors + turn;
  hue = (hue - std::floor(hue)) * kSectors;
  const auto channel = [&](double shift) {
    const double sum = shift + hue;
    const double k = sum < kSectors ? sum : sum - kSectors;
    return value - chroma * std::clamp(std::min(k, 4 - k), 0.0, 1.0);
  };
  return {channel(5), channel(3), channel(1)};
}

}  // namespace

void require_within(const Region& region, const Image& image) {
  if (region.top >= 0 && region.left >= 0 && region.height > 0 && region.width > 0 &&
      region.height <= image.height - region.top && region.width <= image.width - region.left) {
    return;
  }
  throw std::invalid_argument(
      "a region of " + std::to_string(region.height) + " x " + std::to_string(region.width) +
      " pixels at " + std::to_string(region.top) + ", " + std::to_string(region.left) + " of " +
      std::to_string(image.height) + " x " + std::to_string(image.width));
}

Image cropped(const Image& image, const Region& region) {
  require_within(region, image);
  Image result = make_image(region.height, region.width);
  for (int64_t c = 0; c < kChannels; ++c) {
    const auto from = image.plane(c);
    const auto to = result.plane(c);
    for (int64_t y = 0; y < region.height; ++y) {
      std::copy_n(from.begin() + (region.top + y) * image.width + region.left, region.width,
                  to.begin() + y * region.width);
    }
  }
  return result;
}

Region centre_of(const Image& image, int64_t height, int64_t width) {
  // Python rounds half to even.
  const auto half = [](int64_t margin) { return std::llrint(static_cast<double>(margin) / 2); };
  return {.top = half(image.height - height),
          .left = half(image.width - width),
          .height = height,
          .width = width};
}

Image flipped(const Image& image) {
  Image result = make_image(image.height, image.width);
  for (int64_t row = 0; row < kChannels * image.height; ++row) {
    const int64_t begin = row * image.width;
    row_loops().reverse(image.pixels.data() + begin, image.width, result.pixels.data() + begin);
  }
  return result;
}

Image padded(const Image& image, int64_t margin, uint8_t value) {
  Image result = make_image(image.height + 2 * margin, image.width + 2 * margin);
  std::fill(result.pixels.begin(), result.pixels.end(), value);
  for (int64_t c = 0; c < kChannels; ++c) {
    const auto from = image.plane(c);
    const auto to = result.plane(c);
    for (int64_t y = 0; y < image.height; ++y) {
      std::copy_n(from.begin() + y * image.width, image.width,
                  to.begin() + (y + margin) * result.width + margin);
    }
  }
  return result;
}

Image padded_by_reflection(const Image& image, int64_t margin) {
  Image result = make_image(image.height + 2 * margin, image.width + 2 * margin);
  std::vector<int64_t> columns(static_cast<size_t>(result.width));
  for (int64_t x = 0; x < result.width; ++x) {
    columns[static_cast<size_t>(x)] = reflected(x - margin, image.width);
  }
  for (int64_t c = 0; c < kChannels; ++c) {
    const uint8_t* from = image.plane(c).data();
    uint8_t* to = result.plane(c).data();
    for (int64_t y = 0; y < result.height; ++y) {
      const uint8_t* row = from + reflected(y - margin, image.height) * image.width;
      for (const int64_t x : columns) *to++ = row[x];
    }
  }
  return result;
}

void change_brightness(Image& image, double factor) {
  const auto blend = static_cast<float>(factor);
  for (uint8_t& pixel : image.pixels) pixel = blended(0, pixel, blend);
}

void change_contrast(Image& image, double factor) {
  const Planes planes(image);
  uint64_t sum = 0;
  for (size_t i = 0; i < planes.size(); ++i) sum += planes.grey(i);
  const auto mean =
      static_cast<int>(static_cast<double>(sum) / static_cast<double>(planes.size()) + 0.5);
  const auto blend = static_cast<float>(factor);
  for (uint8_t& pixel : image.pixels) pixel = blended(mean, pixel, blend);
}

void change_saturation(Image& image, double factor) {
  const Planes planes(image);
  const auto blend = static_cast<float>(factor);
  for (size_t i = 0; i < planes.size(); ++i) {
    const uint8_t grey = planes.grey(i);
    for (const auto& plane : {planes.red, planes.green, planes.blue}) {
      plane[i] = blended(grey, plane[i], blend);
    }
  }
}

void change_hue(Image& image, double turn) {
  const Planes planes(image);
  for (size_t i = 0; i < planes.size(); ++i) {
    const auto rgb = turned(
        {planes.red[i] / kMostByte, planes.green[i] / kMostByte, planes.blue[i] / kMostByte}, turn);
    const auto byte = [&](size_t c) {
      return static_cast<uint8_t>(std::lround(rgb[c] * kMostByte));
    };
    planes.red[i] = byte(0);
    planes.green[i] = byte(1);
    planes.blue[i] = byte(2);
  }
}

void normalise(const Image& image, const ChannelStatistics& statistics, std::span<float> out,
               const std::array<double, 3>& light, PixelLayout layout) {
  require_numbers("normalise", out.size(), image.height, image.width);
  // A byte has few values.
  std::array<std::array<float, 256>, kChannels> tables{};
  for (size_t c = 0; c < tables.size(); ++c) {
    for (size_t value = 0; value < tables[c].size(); ++value) {
      tables[c][value] = static_cast<float>(
          (static_cast<double>(value) / kMostByte + light.at(c) - statistics.mean.at(c)) /
          statistics.deviation.at(c));
    }
  }
  float* to = out.data();
  if (layout == PixelLayout::kChannelsLast) {
    const auto red = image.plane(0), green = image.plane(1), blue = image.plane(2);
    for (size_t i = 0; i < red.size(); ++i, to += kChannels) {
      to[0] = tables[0][red[i]];
      to[1] = tables[1][green[i]];
      to[2] = tables[2][blue[i]];
    }
    return;
  }
  for (int64_t c = 0; c < kChannels; ++c) {
    const auto& table = tables.at(static_cast<size_t>(c));
    for (const uint8_t pixel : image.plane(c)) *to++ = table[pixel];
  }
}

Image denormalised(std::span<const float> pixels, int64_t height, int64_t width,
                   const ChannelStatistics& statistics, PixelLayout layout) {
  require_numbers("denormalised", pixels.size(), height, width);
  Image image = make_image(height, width);
  const bool is_planes = layout == PixelLayout::kPlanes;
  for (int64_t c = 0; c < kChannels; ++c) {
    const auto channel = static_cast<size_t>(c);
    const auto plane = image.plane(c);
    const float* from = pixels.data() + (is_planes ? static_cast<int64_t>(plane.size()) * c : c);
    const size_t step = is_planes ? 1 : static_cast<size_t>(kChannels);
    for (size_t i = 0; i < plane.size(); ++i) {
      const double value =
          (from[i * step] * statistics.deviation.at(channel) + statistics.mean.at(channel)) *
          kMostByte;
      // Not a number becomes black.
      plane[i] = value > 0 ? static_cast<uint8_t>(std::min(value, kMostByte) + 0.5) : uint8_t{0};
    }
  }
  return image;
}

}  // namespace stretto::image
