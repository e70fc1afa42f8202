#pragma once

// jpeglib.h needs what stands before it.
// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#include <png.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "image/image.h"

/// Pictures for tests, and files of them.
namespace stretto::image::test {

/// A smooth picture: each channel rises in another direction.
inline Image gradient(int64_t height, int64_t width) {
  Image image = make_image(height, width);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const auto at = static_cast<size_t>(y * width + x);
      image.plane(0)[at] = static_cast<uint8_t>(255 * x / width);
      image.plane(1)[at] = static_cast<uint8_t>(255 * y / height);
      image.plane(2)[at] = static_cast<uint8_t>(255 * (x + y) / (width + height));
    }
  }
  return image;
}

/// A picture without any smoothness.
inline Image speckled(int64_t height, int64_t width) {
  Image image = make_image(height, width);
  uint32_t state = 12345;
  for (uint8_t& pixel : image.pixels) {
    state = state * 1664525U + 1013904223U;
    pixel = static_cast<uint8_t>(state >> 24U);
  }
  return image;
}

/// Planes as rows of `channels` bytes a pixel.
inline std::vector<uint8_t> interleaved(const Image& image) {
  std::vector<uint8_t> pixels;
  for (int64_t i = 0; i < image.plane_size(); ++i) {
    for (int64_t c = 0; c < kChannels; ++c)
      pixels.push_back(image.plane(c)[static_cast<size_t>(i)]);
  }
  return pixels;
}

/// What a PNG holds.
struct PngPicture {
  int64_t height = 0, width = 0;
  int color_type = PNG_COLOR_TYPE_RGB, bits = 8;
  std::vector<uint8_t> bytes;  ///< rows as PNG has them
  std::vector<png_color> palette = {};
  bool is_interlaced = false;
};

inline std::string png_of(const PngPicture& picture) {
  png_structp png = ::png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = ::png_create_info_struct(png);
  std::string out;
  ::png_set_write_fn(
      png, &out,
      [](png_structp p, png_bytep data, size_t size) {
        static_cast<std::string*>(::png_get_io_ptr(p))->append(reinterpret_cast<char*>(data), size);
      },
      [](png_structp) {});
  ::png_set_IHDR(png, info, static_cast<png_uint_32>(picture.width),
                 static_cast<png_uint_32>(picture.height), picture.bits, picture.color_type,
                 picture.is_interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!picture.palette.empty()) {
    ::png_set_PLTE(png, info, picture.palette.data(), static_cast<int>(picture.palette.size()));
  }
  ::png_write_info(png, info);
  std::vector<uint8_t> bytes = picture.bytes;
  std::vector<png_bytep> rows;
  const size_t row_bytes = bytes.size() / static_cast<size_t>(picture.height);
  for (int64_t y = 0; y < picture.height; ++y) {
    rows.push_back(bytes.data() + static_cast<size_t>(y) * row_bytes);
  }
  ::png_write_image(png, rows.data());
  ::png_write_end(png, info);
  ::png_destroy_write_struct(&png, &info);
  return out;
}

inline std::string png_of(const Image& image) {
  return png_of(
      PngPicture{.height = image.height, .width = image.width, .bytes = interleaved(image)});
}

/// What a JPEG is made of.
struct JpegPicture {
  int64_t height = 0, width = 0;
  int components = 3;
  J_COLOR_SPACE space = JCS_RGB;
  std::vector<uint8_t> bytes;  ///< rows of `components` bytes a pixel
  int quality = 95;
  bool is_progressive = false;
  std::string app1 = {};  ///< an EXIF segment
};

inline std::string jpeg_of(const JpegPicture& picture) {
  jpeg_compress_struct job{};
  jpeg_error_mgr errors{};
  job.err = ::jpeg_std_error(&errors);
  ::jpeg_create_compress(&job);
  unsigned char* data = nullptr;
  unsigned long size = 0;  // as the library has it
  ::jpeg_mem_dest(&job, &data, &size);
  job.image_height = static_cast<JDIMENSION>(picture.height);
  job.image_width = static_cast<JDIMENSION>(picture.width);
  job.input_components = picture.components;
  job.in_color_space = picture.space;
  ::jpeg_set_defaults(&job);
  ::jpeg_set_quality(&job, picture.quality, TRUE);
  if (picture.is_progressive) ::jpeg_simple_progression(&job);
  ::jpeg_start_compress(&job, TRUE);
  if (!picture.app1.empty()) {
    ::jpeg_write_marker(&job, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(picture.app1.data()),
                        static_cast<unsigned>(picture.app1.size()));
  }
  std::vector<uint8_t> bytes = picture.bytes;
  for (int64_t y = 0; y < picture.height; ++y) {
    JSAMPROW row = bytes.data() + y * picture.width * picture.components;
    ::jpeg_write_scanlines(&job, &row, 1);
  }
  ::jpeg_finish_compress(&job);
  ::jpeg_destroy_compress(&job);
  std::string out(reinterpret_cast<char*>(data), size);
  std::free(data);
  return out;
}

inline JpegPicture jpeg_picture(const Image& image) {
  return {.height = image.height, .width = image.width, .bytes = interleaved(image)};
}

/// An EXIF segment with an orientation.
inline std::string exif_of(int orientation, bool is_big_endian) {
  const auto number = [&](unsigned value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) {
      const int place = is_big_endian ? bytes - 1 - i : i;
      text += static_cast<char>(value >> (8 * place) & 0xFFU);
    }
    return text;
  };
  const std::string make =
      number(0x010F, 2) + number(2, 2) + number(1, 4) + std::string("A\0\0\0", 4);
  const std::string turn = number(0x0112, 2) + number(3, 2) + number(1, 4) +
                           number(static_cast<unsigned>(orientation), 2) + number(0, 2);
  return std::string("Exif\0\0", 6) + (is_big_endian ? "MM" : "II") + number(42, 2) + number(8, 4) +
         number(2, 2) + make + turn + number(0, 4);
}

}  // namespace stretto::image::test
