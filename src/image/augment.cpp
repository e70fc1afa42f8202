#include "image/augment.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/random_streams.h"
#include "image/transform.h"

namespace stretto::image {
namespace {

// Principal components of the colours of ImageNet, in [0, 1], as AlexNet's authors published them.
constexpr std::array<double, 3> kEigenvalues{0.2175, 0.0188, 0.0045};
constexpr std::array<std::array<double, 3>, 3> kEigenvectors{
    {{-0.5675, 0.7192, 0.4009}, {-0.5808, -0.0045, -0.8140}, {-0.5836, -0.6948, 0.4203}}};

double draw_between(double low, double high, RandomStream& random) {
  return low + (high - low) * random.uniform();
}

int64_t draw_place(int64_t places, RandomStream& random) {
  return static_cast<int64_t>(random.below(static_cast<uint64_t>(places)));
}

double draw_factor(double spread, RandomStream& random) {
  return draw_between(std::max(0.0, 1 - spread), 1 + spread, random);
}

/// The largest part in the middle whose shape is allowed.
Region middle_part(int64_t height, int64_t width, const CropOptions& options) {
  Region region{.height = height, .width = width};
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  if (ratio < options.least_ratio) {
    region.height = std::llrint(static_cast<double>(width) / options.least_ratio);
  } else if (ratio > options.most_ratio) {
    region.width = std::llrint(static_cast<double>(height) * options.most_ratio);
  }
  region.height = std::clamp<int64_t>(region.height, 1, height);
  region.width = std::clamp<int64_t>(region.width, 1, width);
  region.top = (height - region.height) / 2;
  region.left = (width - region.width) / 2;
  return region;
}

}  // namespace

Region draw_crop(int64_t height, int64_t width, const CropOptions& options, RandomStream& random) {
  const double all = static_cast<double>(height) * static_cast<double>(width);
  for (int i = 0; i < options.tries; ++i) {
    const double area = all * draw_between(options.least_area, options.most_area, random);
    const double ratio =
        std::exp(draw_between(std::log(options.least_ratio), std::log(options.most_ratio), random));
    const Region size{.height = std::llrint(std::sqrt(area / ratio)),
                      .width = std::llrint(std::sqrt(area * ratio))};
    if (size.height < 1 || size.height > height || size.width < 1 || size.width > width) continue;
    const int64_t top = draw_place(height - size.height + 1, random);
    const int64_t left = draw_place(width - size.width + 1, random);
    return {.top = top, .left = left, .height = size.height, .width = size.width};
  }
  return middle_part(height, width, options);
}

Region draw_window(const Image& image, int64_t height, int64_t width, RandomStream& random) {
  require_within({.height = height, .width = width}, image);
  const int64_t top = draw_place(image.height - height + 1, random);
  const int64_t left = draw_place(image.width - width + 1, random);
  return {.top = top, .left = left, .height = height, .width = width};
}

bool draw_flip(double probability, RandomStream& random) {
  return random.uniform() < probability;
}

bool flips_in_turn(uint64_t seed, int64_t epoch, int64_t sample) {
  const uint64_t first =
      mix64(mix64(seed, streams::kFirstFlips), static_cast<uint64_t>(sample)) >> 63;
  return (first + static_cast<uint64_t>(epoch)) % 2 == 1;
}

std::optional<Region> draw_erasing(int64_t height, int64_t width, const ErasingOptions& options,
                                   RandomStream& random) {
  const double all = static_cast<double>(height) * static_cast<double>(width);
  for (int i = 0; i < options.tries; ++i) {
    const double area = all * draw_between(options.least_area, options.most_area, random);
    const double ratio =
        std::exp(draw_between(std::log(options.least_ratio), std::log(options.most_ratio), random));
    const Region size{.height = std::llrint(std::sqrt(area * ratio)),
                      .width = std::llrint(std::sqrt(area / ratio))};
    if (size.height < 1 || size.height >= height || size.width < 1 || size.width >= width) continue;
    const int64_t top = draw_place(height - size.height + 1, random);
    const int64_t left = draw_place(width - size.width + 1, random);
    return Region{.top = top, .left = left, .height = size.height, .width = size.width};
  }
  return std::nullopt;
}

void jitter(Image& image, const JitterOptions& options, RandomStream& random) {
  std::array<int, 4> order{0, 1, 2, 3};
  for (size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
  // Drawn in this order whatever is done first, and of no use to a change that is left out.
  const double brightness = draw_factor(options.brightness, random);
  const double contrast = draw_factor(options.contrast, random);
  const double saturation = draw_factor(options.saturation, random);
  const double hue = draw_between(-options.hue, options.hue, random);
  for (const int change : order) {
    if (change == 0 && options.brightness > 0) change_brightness(image, brightness);
    if (change == 1 && options.contrast > 0) change_contrast(image, contrast);
    if (change == 2 && options.saturation > 0) change_saturation(image, saturation);
    if (change == 3 && options.hue > 0) change_hue(image, hue);
  }
}

std::array<double, 3> draw_light(double deviation, RandomStream& random) {
  std::array<double, 3> light{0, 0, 0};
  for (size_t component = 0; component < kEigenvalues.size(); ++component) {
    const double amount = deviation * random.normal() * kEigenvalues[component];
    for (size_t c = 0; c < light.size(); ++c) light[c] += amount * kEigenvectors[c][component];
  }
  return light;
}

}  // namespace stretto::image
