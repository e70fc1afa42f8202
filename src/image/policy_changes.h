#pragma once

#include <array>
#include <cstdint>

#include "image/image.h"

/// The changes that policies of augmentation are made of, equal to Pillow's bytes, with the
/// formulas that torchvision has for them.
namespace stretto::image {

/// Where the pixel (x, y) of a new picture comes from, of the centres of pixels:
/// (a x + b y + c, d x + e y + f).
using AffineMatrix = std::array<double, 6>;

/// The nearest pixel of each place, and black outside, as Pillow's Image.transform(AFFINE).
Image affine(const Image& image, const AffineMatrix& matrix);
/// Rows move to the side: pixel (x, y) comes from (x + slope y, y).
Image sheared_x(const Image& image, double slope);
Image sheared_y(const Image& image, double slope);
/// Moved to the right and down by whole pixels.
Image translated(const Image& image, int64_t right, int64_t down);
/// Turned anticlockwise around the middle, as Pillow's Image.rotate().
Image rotated(const Image& image, double degrees);

/// Above 1 edges stand out, below they are smoothed: a blend with the picture under Pillow's SMOOTH
/// filter.
void change_sharpness(Image& image, double factor);
/// Keeps the upper bits of each byte, 0 to 8 of them.
void posterize(Image& image, int bits);
/// Inverts what is not below the threshold.
void solarize(Image& image, double threshold);
/// Spreads each channel over all bytes.
void auto_contrast(Image& image);
/// Spreads each channel so that bytes are equally frequent.
void equalize(Image& image);

}  // namespace stretto::image
