#include "image/image_file.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "image/codecs.h"
#include "image/exif.h"

namespace stretto::image {
namespace {

using std::string_view_literals::operator""sv;

std::optional<ImageFormat> sniffed_format(std::string_view bytes) {
  if (bytes.starts_with("\xFF\xD8\xFF"sv)) return ImageFormat::kJpeg;
  if (bytes.starts_with("\x89PNG\r\n\x1A\n"sv)) return ImageFormat::kPng;
  return std::nullopt;
}

ImageFormat format_of_bytes(std::string_view bytes, const std::string& name) {
  if (bytes.empty()) refuse_image(name, "is empty", "leave it out, or put the picture there");
  const auto format = sniffed_format(bytes);
  if (!format) {
    refuse_image(
        name, "is no picture that can be read: its first bytes are those of no JPEG or PNG file");
  }
  return *format;
}

}  // namespace

void refuse_image(const std::string& name, const std::string& what, const std::string& advice) {
  throw Error(ExitCode::kBadData, name + ": " + what, advice);
}

void require_size(int64_t height, int64_t width, int64_t max_pixels, const std::string& name) {
  const std::string size = "has " + with_thousands(height) + " x " + with_thousands(width);
  if (height < 1 || width < 1) refuse_image(name, size + " pixels");
  if (height > kMaxSide || width > kMaxSide || height > max_pixels / width) {
    refuse_image(name,
                 size + " pixels by its header; at most " + with_thousands(max_pixels) +
                     " are decoded, and " + with_thousands(kMaxSide) + " a side",
                 "make it smaller, or leave it out");
  }
}

void put_row(const uint8_t* rgb, int64_t row, Image& image) {
  uint8_t* red = image.pixels.data() + row * image.width;
  uint8_t* green = red + image.plane_size();
  uint8_t* blue = green + image.plane_size();
  for (int64_t x = 0; x < image.width; ++x) {
    red[x] = rgb[3 * x];
    green[x] = rgb[3 * x + 1];
    blue[x] = rgb[3 * x + 2];
  }
}

int shrink_for(const ImageInfo& info, int64_t least_side) {
  if (info.format != ImageFormat::kJpeg) return 1;
  const int64_t side = std::min(info.height, info.width);
  int shrink = 1;
  while (shrink < 8 && side / (2 * shrink) >= least_side) shrink *= 2;
  return shrink;
}

ImageInfo image_info(std::string_view bytes, const std::string& name, int64_t max_pixels) {
  return format_of_bytes(bytes, name) == ImageFormat::kJpeg ? jpeg_info(bytes, name, max_pixels)
                                                            : png_info(bytes, name, max_pixels);
}

Image decode_image(std::string_view bytes, const std::string& name, const DecodeOptions& options) {
  if (format_of_bytes(bytes, name) == ImageFormat::kPng) return decode_png(bytes, name, options);
  Image image = decode_jpeg(bytes, name, options);
  if (!options.applies_orientation) return image;
  return upright(std::move(image), jpeg_info(bytes, name, options.max_pixels).orientation);
}

ImageInfo image_info(const std::filesystem::path& path) {
  const MappedFile file(path);
  return image_info(file.bytes(), path.string());
}

Image read_image(const std::filesystem::path& path, const DecodeOptions& options) {
  return decode_image(read_file(path, kMaxImageBytes), path.string(), options);
}

}  // namespace stretto::image
