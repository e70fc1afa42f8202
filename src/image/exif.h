#pragma once

#include <string_view>

#include "image/image.h"

namespace stretto::image {

/// The orientation in EXIF data (EXIF 2.3, tag 0x0112): an APP1 segment of a JPEG, from "Exif" on,
/// or what PNG and WebP files have, which may begin with the TIFF header.
/// @return 1 to 8; 1, upright, where there is none or the segment is damaged
int exif_orientation(std::string_view exif);

/// The picture turned upright, from one that is stored with this orientation:
/// 2 mirrored; 3 half a turn; 4 upside down; 5 transposed; 6 needs a quarter turn clockwise;
/// 7 transposed along the other diagonal; 8 needs a quarter turn anticlockwise.
Image upright(Image image, int orientation);

}  // namespace stretto::image
