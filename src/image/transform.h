#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "image/image.h"

/// Functions of pictures. They draw nothing: image/augment.h decides by chance.
namespace stretto::image {

/// Throws std::invalid_argument for a region that is empty or not within the picture.
void require_within(const Region& region, const Image& image);

/// A part of a picture.
Image cropped(const Image& image, const Region& region);
/// The region of this size in the middle; a margin that is odd is larger at the bottom and at the
/// right by one, as int(round(margin / 2)) of Python has it for torchvision's CenterCrop.
Region centre_of(const Image& image, int64_t height, int64_t width);
/// The mirror image: left and right change places.
Image flipped(const Image& image);
/// The picture in the middle of a larger one, of whose other pixels all have this value.
Image padded(const Image& image, int64_t margin, uint8_t value = 0);
/// The same with a margin that mirrors the picture; the row at the edge is not repeated (numpy's
/// "reflect"). A margin may be wider than the picture.
Image padded_by_reflection(const Image& image, int64_t margin);

/// Red, green and blue as one brightness, as Pillow's convert("L"): rounded
/// 0.299 R + 0.587 G + 0.114 B, in units of 2^-16.
inline uint8_t grey_of(uint8_t red, uint8_t green, uint8_t blue) {
  return static_cast<uint8_t>((red * 19595U + green * 38470U + blue * 7471U + 0x8000U) >> 16U);
}

/// A blend of two bytes, as Pillow's Image.blend(): what is left of a number is cut off.
inline uint8_t blended(int without, int with, float factor) {
  const float value = static_cast<float>(without) + factor * static_cast<float>(with - without);
  return static_cast<uint8_t>(std::clamp(value, 0.0F, 255.0F));
}

/// As torchvision's functions on Pillow's pictures: a blend of the picture (1) and of a picture
/// without that property (0), cut to bytes. Above 1 there is more of it.
void change_brightness(Image& image, double factor);  ///< blend with black
void change_contrast(Image& image, double factor);    ///< with the mean brightness
void change_saturation(Image& image, double factor);  ///< with the grey picture
/// Turns the hue by a share of the circle, in [-0.5, 0.5], in HSV with the precision of floats;
/// Pillow has 256 hues.
void change_hue(Image& image, double turn);

/// The mean and standard deviation of channels, in the scale of [0, 1].
struct ChannelStatistics {
  std::array<double, 3> mean{0, 0, 0}, deviation{1, 1, 1};
};
/// Those that models of ImageNet are trained with.
inline constexpr ChannelStatistics kImageNetStatistics{.mean = {0.485, 0.456, 0.406},
                                                       .deviation = {0.229, 0.224, 0.225}};

/// How the numbers of a picture stand one behind the other.
enum class PixelLayout : uint8_t {
  kPlanes,        ///< [3, height, width]
  kChannelsLast,  ///< [height, width, 3]
};

/// (x / 255 + light - mean) / deviation of each channel.
/// @param light  added to all pixels, as image/augment.h draws it
/// @param out    [3, height, width], or as `layout` says
void normalise(const Image& image, const ChannelStatistics& statistics, std::span<float> out,
               const std::array<double, 3>& light = {0, 0, 0},
               PixelLayout layout = PixelLayout::kPlanes);
/// The picture of normalised numbers: (x * deviation + mean) * 255, rounded and cut to bytes. For
/// reports.
/// Throws std::invalid_argument unless there are 3 * height * width numbers.
Image denormalised(std::span<const float> pixels, int64_t height, int64_t width,
                   const ChannelStatistics& statistics, PixelLayout layout = PixelLayout::kPlanes);

}  // namespace stretto::image
