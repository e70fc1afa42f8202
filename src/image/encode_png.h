#pragma once

#include <string>

#include "image/image.h"

namespace stretto::image {

/// A picture as the bytes of a PNG of 8-bit RGB; the same bytes for the same pixels and zlib.
/// Throws std::invalid_argument for a picture without pixels.
std::string encode_png(const Image& image);

}  // namespace stretto::image
