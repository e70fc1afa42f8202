#include "image/exif.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace stretto::image {
namespace {

using std::string_view_literals::operator""sv;

constexpr uint64_t kOrientationTag = 0x0112, kShortType = 3;
constexpr size_t kEntryBytes = 12;
constexpr int kUpright = 1, kLastOrientation = 8;

/// Numbers of a TIFF header; 0 behind its end.
struct TiffNumbers {
  std::string_view bytes;
  bool is_big_endian = false;

  uint64_t at(uint64_t offset, size_t count) const {
    if (offset > bytes.size() || bytes.size() - offset < count) return 0;
    uint64_t number = 0;
    for (size_t i = 0; i < count; ++i) {
      const size_t place = is_big_endian ? i : count - 1 - i;
      number = number << 8 | static_cast<uint8_t>(bytes[offset + place]);
    }
    return number;
  }
};

}  // namespace

int exif_orientation(std::string_view exif) {
  constexpr std::string_view kExif = "Exif\0\0"sv;
  if (exif.starts_with(kExif)) exif.remove_prefix(kExif.size());
  TiffNumbers tiff{.bytes = exif};
  tiff.is_big_endian = tiff.bytes.starts_with("MM");
  if (!tiff.is_big_endian && !tiff.bytes.starts_with("II")) return kUpright;
  const uint64_t directory = tiff.at(4, 4);
  const uint64_t count = tiff.at(directory, 2);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t entry = directory + 2 + i * kEntryBytes;
    if (entry >= tiff.bytes.size()) break;
    if (tiff.at(entry, 2) != kOrientationTag || tiff.at(entry + 2, 2) != kShortType) continue;
    const auto orientation = static_cast<int>(tiff.at(entry + 8, 2));
    return orientation >= kUpright && orientation <= kLastOrientation ? orientation : kUpright;
  }
  return kUpright;
}

Image upright(Image image, int orientation) {
  if (orientation <= kUpright || orientation > kLastOrientation) return image;
  const bool is_transposed = orientation >= 5;
  // Which way the stored rows and columns are read.
  const bool from_bottom =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  Image result =
      is_transposed ? make_image(image.width, image.height) : make_image(image.height, image.width);
  for (int64_t c = 0; c < kChannels; ++c) {
    const auto from = std::as_const(image).plane(c);
    const auto to = result.plane(c);
    for (int64_t y = 0; y < result.height; ++y) {
      for (int64_t x = 0; x < result.width; ++x) {
        int64_t row = is_transposed ? x : y, column = is_transposed ? y : x;
        if (from_bottom) row = image.height - 1 - row;
        if (from_right) column = image.width - 1 - column;
        to[static_cast<size_t>(y * result.width + x)] =
            from[static_cast<size_t>(row * image.width + column)];
      }
    }
  }
  return result;
}

}  // namespace stretto::image
