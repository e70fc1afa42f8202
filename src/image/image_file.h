#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "image/image.h"

/// Pictures in files: JPEG by libjpeg-turbo, PNG by libpng, WebP by libwebp.
namespace stretto::image {

enum class ImageFormat : uint8_t { kJpeg, kPng, kWebp };

/// What the header of a file says.
struct ImageInfo {
  ImageFormat format = ImageFormat::kJpeg;
  int64_t height = 0, width = 0;  ///< as stored, before the orientation is applied
  int64_t channels = 0;           ///< 1 grey, 3 colours, 4 CMYK or alpha; 2 grey with alpha
  /// EXIF orientation: 1 upright, 2 to 8 mirrored or rotated. In a PNG it stands before the pixels.
  int orientation = 1;
};

/// Pictures above these bounds are refused by their header, before memory is taken.
inline constexpr int64_t kMaxSide = 65'500;                // libjpeg's own
inline constexpr int64_t kMaxPixels = 89'478'485;          // Pillow's: 256 MiB as RGB
inline constexpr size_t kMaxImageBytes = size_t{1} << 28;  // of a file

/// What is needed of a picture. Its other rows may be left black; a JPEG is decoded faster then.
struct DecodePart {
  Region region;  ///< of the picture in its full size
  int shrink = 1;
};

struct DecodeOptions {
  int64_t max_pixels = kMaxPixels;
  /// Turns the picture as its EXIF tag says. torchvision does so only when it is asked.
  bool applies_orientation = false;
  /// A JPEG is decoded to 1 / shrink of its size: 1, 2, 4 or 8. Faster, and other pixels: it is
  /// for training alone.
  int shrink = 1;
  /// Asked once the header is known, with the size that the picture has when it is upright.
  /// `shrink` does not count then. Empty: all of it.
  std::function<DecodePart(int64_t height, int64_t width)> part = {};
};

/// The largest shrink that leaves both sides of a picture at least `least_side` pixels long.
int shrink_for(const ImageInfo& info, int64_t least_side);

/// Header facts, without decoding. The kind of a file is what its first bytes say.
/// @param name  of the file, for messages
/// Throws Error(kBadData), with the name, for bytes that are empty, of another kind, damaged, or of
/// a picture above a bound.
ImageInfo image_info(std::string_view bytes, const std::string& name,
                     int64_t max_pixels = kMaxPixels);

/// Decodes a picture to RGB as Pillow's convert("RGB") does. JPEG: accurate transform and smooth
/// chroma upsampling; CMYK is inverted, as Adobe writes it. PNG: palettes are expanded; of 16 bits
/// the upper eight stay, but grey of 16 bits is cut at 255. WebP: smooth chroma upsampling, the
/// first picture of an animation. Alpha is dropped. Grey becomes three equal planes. Colour
/// profiles and gamma are not applied. Throws as image_info(), and for a file that is cut off or
/// has damaged pixels.
Image decode_image(std::string_view bytes, const std::string& name,
                   const DecodeOptions& options = {});

/// The same for a path. Both also throw as read_file() does: Error(kBadData) for a file of more
/// than kMaxImageBytes.
ImageInfo image_info(const std::filesystem::path& path);
Image read_image(const std::filesystem::path& path, const DecodeOptions& options = {});

}  // namespace stretto::image
