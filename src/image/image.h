#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stretto::image {

/// A picture: three planes of bytes, red, green and blue, of rows from top to bottom.
struct Image {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;  ///< [3, height, width]

  int64_t plane_size() const { return height * width; }
  std::span<const uint8_t> plane(int64_t channel) const {
    return {pixels.data() + channel * plane_size(), static_cast<size_t>(plane_size())};
  }
  std::span<uint8_t> plane(int64_t channel) {
    return {pixels.data() + channel * plane_size(), static_cast<size_t>(plane_size())};
  }
};

inline constexpr int64_t kChannels = 3;

/// A black picture.
inline Image make_image(int64_t height, int64_t width) {
  return {.height = height,
          .width = width,
          .pixels = std::vector<uint8_t>(static_cast<size_t>(kChannels * height * width))};
}

/// A rectangle of a picture.
struct Region {
  int64_t top = 0, left = 0, height = 0, width = 0;

  bool operator==(const Region&) const = default;
};

/// The whole picture.
inline Region all_of(const Image& image) {
  return {.top = 0, .left = 0, .height = image.height, .width = image.width};
}

}  // namespace stretto::image
