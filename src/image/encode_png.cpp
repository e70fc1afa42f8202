#include "image/encode_png.h"

#include <png.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

namespace stretto::image {
namespace {

// PNG has the three bytes of a pixel side by side.
std::vector<uint8_t> interleaved(const Image& image) {
  const auto size = static_cast<size_t>(image.plane_size());
  std::vector<uint8_t> pixels(3 * size);
  for (size_t channel = 0; channel < 3; ++channel) {
    const auto plane = image.plane(static_cast<int64_t>(channel));
    for (size_t i = 0; i < size; ++i) pixels[3 * i + channel] = plane[i];
  }
  return pixels;
}

}  // namespace

std::string encode_png(const Image& image) {
  if (image.height < 1 || image.width < 1) {
    throw std::invalid_argument("encode_png: a picture without pixels");
  }
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = PNG_FORMAT_RGB;
  const auto pixels = interleaved(image);
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::string bytes(size, '\0');
  // Row stride 0: rows lie one behind the other.
  if (png_image_write_to_memory(&header, bytes.data(), &size, 0, pixels.data(), 0, nullptr) == 0) {
    throw std::invalid_argument(std::string("encode_png: ") + header.message);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace stretto::image
