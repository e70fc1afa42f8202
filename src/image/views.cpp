#include "image/views.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/random_streams.h"
#include "image/augment.h"
#include "image/auto_augment.h"
#include "image/resize.h"

namespace stretto::image {
namespace {

/// The steps of streams::augmentation_step().
enum AugmentStep : uint64_t { kPart = 1, kFlip, kPolicy, kJitter, kLight, kErasing };

constexpr int kMostShrink = 8;
constexpr int64_t kMostRatio = 100;  // of a side to the other, before a strip is cut

Filter filter_of(const AugmentOptions& options) {
  if (options.interpolation == "bicubic") return Filter::kBicubic;
  return options.interpolation == "box" ? Filter::kArea : Filter::kBilinear;
}

/// The length of the shorter side before a window or the middle is cut out.
int64_t short_side_of(const AugmentOptions& options, size_t number, int64_t side) {
  const int64_t wanted = options.test_resize.empty()
                             ? default_test_resize(side)
                             : static_cast<int64_t>(options.test_resize[number]);
  return std::max(wanted, side);
}

/// The part of a whole picture in one that was decoded smaller, each of whose pixels covers a
/// square of pixels of the whole.
Region shrunk(const Region& region, const Region& whole, const Image& decoded) {
  int64_t shrink = 1;
  const auto up = [&](int64_t place) { return (place + shrink - 1) / shrink; };
  while (shrink < kMostShrink &&
         (up(whole.height) > decoded.height || up(whole.width) > decoded.width)) {
    shrink *= 2;
  }
  Region result{.top = region.top / shrink, .left = region.left / shrink};
  result.height = std::min(up(region.top + region.height), decoded.height) - result.top;
  result.width = std::min(up(region.left + region.width), decoded.width) - result.left;
  return result;
}

/// A picture whose shorter side has so many pixels. Of a strip the middle is taken, since the
/// longer side may come to gigabytes.
/// @param whole  the size before it was decoded smaller
Image with_shorter_side(const Image& decoded, const Region& whole, int64_t side, Filter filter) {
  const int64_t most = kMostRatio * std::min(decoded.height, decoded.width);
  if (std::max(decoded.height, decoded.width) <= most) {
    const Region size = with_short_side(whole.height, whole.width, side);
    return resized(decoded, size.height, size.width, filter);
  }
  const Region middle =
      centre_of(decoded, std::min(decoded.height, most), std::min(decoded.width, most));
  const Region size = with_short_side(middle.height, middle.width, side);
  return resized(decoded, middle, size.height, size.width, filter);
}

bool is_square(const Image& image, int64_t side) {
  return image.height == side && image.width == side;
}

/// The four corners and the middle, or the middle alone.
std::vector<Region> test_regions(const AugmentOptions& options, const Image& image, int64_t side) {
  const Region middle = centre_of(image, side, side);
  if (options.test_crop != "five") return {middle};
  const int64_t bottom = image.height - side, right = image.width - side;
  const auto corner = [&](int64_t top, int64_t left) {
    return Region{.top = top, .left = left, .height = side, .width = side};
  };
  return {middle, corner(0, 0), corner(0, right), corner(bottom, 0), corner(bottom, right)};
}

size_t num_resizes(const AugmentOptions& options) {
  const bool is_one = options.test_crop == "squash" || options.test_resize.empty();
  return is_one ? 1 : options.test_resize.size();
}

int64_t num_mirrored(const AugmentOptions& options) {
  return options.test_flip ? 2 : 1;
}

/// Views that are not moved.
int64_t num_plain_views(const AugmentOptions& options) {
  const int64_t parts = options.test_crop == "five" ? 5 : 1;
  return static_cast<int64_t>(num_resizes(options)) * parts * num_mirrored(options);
}

int64_t num_moved_views(const AugmentOptions& options) {
  return options.test_shift > 0 ? 2 * num_mirrored(options) : 0;
}

void add_view(Image view, bool mirrors, std::vector<Image>& views) {
  if (mirrors) {
    Image mirrored = flipped(view);
    views.push_back(std::move(view));
    views.push_back(std::move(mirrored));
  } else {
    views.push_back(std::move(view));
  }
}

/// The parts of one size of a picture; the middle is the first one.
std::vector<Image> parts_of(const Image& decoded, const AugmentOptions& options, size_t number,
                            int64_t side) {
  const Filter filter = filter_of(options);
  if (options.test_crop == "squash") return {resized(decoded, side, side, filter)};
  const bool is_as_it_is = options.test_resize.empty() && is_square(decoded, side);
  const Image image = is_as_it_is ? decoded
                                  : with_shorter_side(decoded, all_of(decoded),
                                                      short_side_of(options, number, side), filter);
  std::vector<Image> parts;
  for (const Region& region : test_regions(options, image, side)) {
    parts.push_back(cropped(image, region));
  }
  return parts;
}

}  // namespace

TrainingView::TrainingView(const AugmentOptions& options, const AugmentKey& key, int64_t side)
    : options_(options), key_(key), side_(side) {
  if (side < 1) throw std::invalid_argument("a view of " + std::to_string(side) + " pixels");
}

RandomStream TrainingView::step(uint64_t number) const {
  return streams::augmentation_step(key_.seed, key_.epoch, key_.sample, number);
}

DecodeOptions TrainingView::decode_options(int64_t max_pixels) {
  return {.max_pixels = max_pixels,
          .applies_orientation = options_.exif_orientation,
          .part = [this](int64_t height, int64_t width) {
            whole_ = Region{.height = height, .width = width};
            return part_of(height, width);
          }};
}

DecodePart TrainingView::part_of(int64_t height, int64_t width) const {
  DecodePart part{.region = {.height = height, .width = width}};
  if (options_.decoding == "full") return part;
  int64_t needed = side_;  // pixels of the shorter side of what is resized
  if (options_.crop == "random_resized") {
    RandomStream random = step(kPart);
    part.region = draw_crop(height, width,
                            {.least_area = options_.min_scale,
                             .most_area = options_.max_scale,
                             .least_ratio = options_.min_ratio,
                             .most_ratio = options_.max_ratio},
                            random);
  } else if (options_.crop == "center" || options_.crop == "random") {
    needed = short_side_of(options_, 0, side_);
  }
  const int64_t shorter = std::min(part.region.height, part.region.width);
  while (options_.decoding == "scaled" && part.shrink < kMostShrink &&
         shorter / (2 * part.shrink) >= needed) {
    part.shrink *= 2;
  }
  return part;
}

Image TrainingView::random_part(const Image& decoded, const Region& whole) const {
  const Filter filter = filter_of(options_);
  RandomStream random = step(kPart);
  if (options_.crop == "random_resized") {
    const Region region = draw_crop(whole.height, whole.width,
                                    {.least_area = options_.min_scale,
                                     .most_area = options_.max_scale,
                                     .least_ratio = options_.min_ratio,
                                     .most_ratio = options_.max_ratio},
                                    random);
    return resized(decoded, shrunk(region, whole, decoded), side_, side_, filter);
  }
  const bool pads = options_.crop == "pad";
  Image image =
      with_shorter_side(decoded, whole, pads ? side_ : short_side_of(options_, 0, side_), filter);
  if (pads && options_.padding > 0) {
    image = options_.padding_mode == "zero" ? padded(image, options_.padding)
                                            : padded_by_reflection(image, options_.padding);
  }
  return cropped(image, draw_window(image, side_, side_, random));
}

Image TrainingView::cut_out(const Image& decoded) const {
  const Region whole = whole_.value_or(all_of(decoded));
  if (options_.crop == "squash") return resized(decoded, side_, side_, filter_of(options_));
  if (options_.crop != "center") return random_part(decoded, whole);
  if (options_.test_resize.empty() && is_square(decoded, side_)) return decoded;
  const Image image =
      with_shorter_side(decoded, whole, short_side_of(options_, 0, side_), filter_of(options_));
  return cropped(image, centre_of(image, side_, side_));
}

Image TrainingView::shown(const Image& decoded) const {
  Image image = cut_out(decoded);
  RandomStream flip = step(kFlip);
  const bool is_mirrored =
      options_.flip == "random"
          ? draw_flip(options_.flip_probability, flip)
          : options_.flip == "alternate" && flips_in_turn(key_.seed, key_.epoch, key_.sample);
  if (is_mirrored) image = flipped(image);
  RandomStream policy = step(kPolicy);
  if (options_.auto_augment == "randaugment") {
    for (const auto& change :
         draw_rand_augment(options_.num_ops, options_.magnitude, side_, side_, policy)) {
      apply(change, image);
    }
  } else if (options_.auto_augment == "trivialaugment") {
    apply(draw_trivial_augment(policy), image);
  }
  RandomStream colours = step(kJitter);
  jitter(image,
         {.brightness = options_.brightness,
          .contrast = options_.contrast,
          .saturation = options_.saturation,
          .hue = options_.hue},
         colours);
  return image;
}

void TrainingView::write(const Image& shown, PixelLayout layout, std::span<float> out) const {
  if (!is_square(shown, side_)) {
    throw std::invalid_argument("a view of " + std::to_string(side_) +
                                " pixels, and a picture of " + std::to_string(shown.height) +
                                " x " + std::to_string(shown.width));
  }
  RandomStream light = step(kLight);
  const auto added =
      options_.lighting > 0 ? draw_light(options_.lighting, light) : std::array<double, 3>{0, 0, 0};
  normalise(shown, options_.statistics(), out, added, layout);
  if (options_.erasing_probability > 0) erase(layout, out);
}

void TrainingView::erase(PixelLayout layout, std::span<float> out) const {
  RandomStream random = step(kErasing);
  if (random.uniform() >= options_.erasing_probability) return;
  const auto region = draw_erasing(side_, side_,
                                   {.least_area = options_.min_erasing_scale,
                                    .most_area = options_.max_erasing_scale,
                                    .least_ratio = options_.min_erasing_ratio,
                                    .most_ratio = options_.max_erasing_ratio},
                                   random);
  if (!region) return;
  const bool is_random = options_.erasing_value == "random";
  const bool is_planes = layout == PixelLayout::kPlanes;
  // The same numbers for the same pixels in both layouts.
  for (int64_t c = 0; c < kChannels; ++c) {
    for (int64_t y = region->top; y < region->top + region->height; ++y) {
      for (int64_t x = region->left; x < region->left + region->width; ++x) {
        const int64_t pixel = y * side_ + x;
        const int64_t at = is_planes ? c * side_ * side_ + pixel : pixel * kChannels + c;
        out[static_cast<size_t>(at)] = is_random ? static_cast<float>(random.normal()) : 0.0F;
      }
    }
  }
}

int64_t default_test_resize(int64_t side) {
  return (side * 8 + 3) / 7;
}

int64_t num_test_views(const AugmentOptions& options) {
  return num_plain_views(options) + num_moved_views(options);
}

std::vector<double> test_weights(const AugmentOptions& options) {
  const int64_t plain = num_plain_views(options), moved = num_moved_views(options);
  const double share = moved > 0 ? 0.5 : 1;
  std::vector<double> weights(static_cast<size_t>(plain), share / static_cast<double>(plain));
  weights.insert(weights.end(), static_cast<size_t>(moved),
                 moved > 0 ? 0.5 / static_cast<double>(moved) : 0);
  return weights;
}

DecodeOptions test_decode_options(const AugmentOptions& options, int64_t max_pixels) {
  return {.max_pixels = max_pixels, .applies_orientation = options.exif_orientation};
}

std::vector<Image> test_views(const Image& decoded, const AugmentOptions& options, int64_t side) {
  std::vector<Image> views;
  Image middle;
  for (size_t number = 0; number < num_resizes(options); ++number) {
    std::vector<Image> parts = parts_of(decoded, options, number, side);
    if (number == 0 && options.test_shift > 0) middle = parts.front();
    for (Image& part : parts) add_view(std::move(part), options.test_flip, views);
  }
  if (options.test_shift > 0) {
    const Image wide = padded_by_reflection(middle, options.test_shift);
    for (const int64_t place : {int64_t{0}, 2 * options.test_shift}) {
      add_view(cropped(wide, {.top = place, .left = place, .height = side, .width = side}),
               options.test_flip, views);
    }
  }
  return views;
}

}  // namespace stretto::image
