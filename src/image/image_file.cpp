#include "image/image_file.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "image/codecs.h"
#include "image/exif.h"
#include "image/row_loops.h"

namespace stretto::image {
namespace {

using std::string_view_literals::operator""sv;

std::optional<ImageFormat> sniffed_format(std::string_view bytes) {
  if (bytes.starts_with("\xFF\xD8\xFF"sv)) return ImageFormat::kJpeg;
  if (bytes.starts_with("\x89PNG\r\n\x1A\n"sv)) return ImageFormat::kPng;
  if (bytes.starts_with("RIFF"sv) && bytes.size() >= 12 && bytes.substr(8, 4) == "WEBP"sv) {
    return ImageFormat::kWebp;
  }
  return std::nullopt;
}

/// Kinds of files that are named, since they are not read.
std::string_view known_kind(std::string_view bytes) {
  const std::string_view brand = bytes.substr(std::min<size_t>(4, bytes.size()));
  if (bytes.starts_with("GIF8"sv)) return "a GIF file";
  if (bytes.starts_with("BM"sv)) return "a BMP file";
  if (bytes.starts_with("II*\0"sv) || bytes.starts_with("MM\0*"sv)) return "a TIFF file";
  if (brand.starts_with("ftyphei"sv) || brand.starts_with("ftypmif1"sv)) return "a HEIF file";
  if (brand.starts_with("ftypavif"sv)) return "an AVIF file";
  if (bytes.starts_with("\0\0\0\x0CjP  "sv)) return "a JPEG 2000 file";
  if (bytes.starts_with("\xFF\x0A"sv)) return "a JPEG XL file";
  if (bytes.starts_with("%PDF"sv)) return "a PDF file";
  if (bytes.starts_with("<svg"sv) || bytes.starts_with("<?xml"sv)) return "an SVG or XML file";
  if (bytes.starts_with("<!DOCTYPE"sv) || bytes.starts_with("<html"sv)) return "a web page";
  return "";
}

ImageFormat format_of_bytes(std::string_view bytes, const std::string& name) {
  if (bytes.empty()) refuse_image(name, "is empty", "leave it out, or put the picture there");
  if (const auto format = sniffed_format(bytes)) return *format;
  std::string what = "is no picture that can be read: ";
  const std::string_view kind = known_kind(bytes);
  if (kind.empty()) {
    what += "its first bytes are those of no JPEG, PNG or WebP file";
  } else {
    what += "it is " + std::string(kind);
  }
  refuse_image(name, what);
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
  put_row_part(rgb, row, 0, image.width, image);
}

void put_row_part(const uint8_t* rgb, int64_t row, int64_t column, int64_t count, Image& image) {
  uint8_t* red = image.pixels.data() + row * image.width + column;
  uint8_t* green = red + image.plane_size();
  row_loops().split(rgb, count, red, green, green + image.plane_size());
}

int shrink_for(const ImageInfo& info, int64_t least_side) {
  if (info.format != ImageFormat::kJpeg) return 1;
  const int64_t side = std::min(info.height, info.width);
  int shrink = 1;
  while (shrink < 8 && side / (2 * shrink) >= least_side) shrink *= 2;
  return shrink;
}

ImageInfo image_info(std::string_view bytes, const std::string& name, int64_t max_pixels) {
  switch (format_of_bytes(bytes, name)) {
    case ImageFormat::kPng:
      return png_info(bytes, name, max_pixels);
    case ImageFormat::kWebp:
      return webp_info(bytes, name, max_pixels);
    case ImageFormat::kJpeg:
      break;
  }
  return jpeg_info(bytes, name, max_pixels);
}

Image decode_image(std::string_view bytes, const std::string& name, const DecodeOptions& options) {
  const ImageFormat format = format_of_bytes(bytes, name);
  // A JPEG is turned by its decoder, which knows what the part of the turned picture needs.
  if (format == ImageFormat::kJpeg) return decode_jpeg(bytes, name, options);
  const bool is_png = format == ImageFormat::kPng;
  Image image = is_png ? decode_png(bytes, name, options) : decode_webp(bytes, name, options);
  if (options.applies_orientation) {
    image =
        upright(std::move(image), is_png ? png_info(bytes, name, options.max_pixels).orientation
                                         : webp_info(bytes, name, options.max_pixels).orientation);
  }
  if (options.part) options.part(image.height, image.width);
  return image;
}

ImageInfo image_info(const std::filesystem::path& path) {
  const MappedFile file(path);
  if (file.size() > kMaxImageBytes) {
    refuse_image(path.string(), "is larger than " + human_bytes(kMaxImageBytes),
                 "make it smaller, or leave it out");
  }
  return image_info(file.bytes(), path.string());
}

Image read_image(const std::filesystem::path& path, const DecodeOptions& options) {
  return decode_image(read_file(path, kMaxImageBytes), path.string(), options);
}

}  // namespace stretto::image
