#pragma once

#include <cstdint>

#include "image/image.h"

namespace stretto::image {

/// The weight of an old pixel by its distance d from the centre of a new one. The unit of d is the
/// larger of the two pixels:
enum class Filter : uint8_t {
  kArea,      ///< 1 for d < 0.5: the mean of what a pixel covers (Pillow's BOX)
  kBilinear,  ///< 1 - d for d < 1
  kBicubic,   ///< Keys' cubic with a = -0.5, for d < 2
};

/// The picture in another size, with antialiasing, as Pillow's Image.resize() makes it: the filter
/// is as wide as the step from pixel to pixel, and each pass rounds to bytes. Equal to the bytes of
/// Pillow 13. Pillow 12 always begins with the horizontal pass, and may differ where a picture
/// becomes far lower, but not narrower.
///
/// @param region  of the picture; pixels outside do not count, as if it had been cut out before
/// Throws std::invalid_argument for a region that is empty or not within the picture, and for a
/// size below 1.
Image resized(const Image& image, const Region& region, int64_t height, int64_t width,
              Filter filter = Filter::kBilinear);
Image resized(const Image& image, int64_t height, int64_t width, Filter filter = Filter::kBilinear);

/// The size in which the shorter side has so many pixels and the longer one keeps its proportion,
/// rounded down, as torchvision's Resize(side).
/// @return a region at 0, 0
Region with_short_side(int64_t height, int64_t width, int64_t side);

}  // namespace stretto::image
