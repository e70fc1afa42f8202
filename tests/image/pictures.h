#pragma once

// jpeglib.h needs what stands before it.
// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#include <png.h>
#include <webp/encode.h>

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
  std::string exif = {};  ///< without "Exif" in front
  std::string text = {};  ///< stored compressed
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
  std::string exif = picture.exif;
  if (!exif.empty()) {
    ::png_set_eXIf_1(png, info, static_cast<png_uint_32>(exif.size()),
                     reinterpret_cast<png_bytep>(exif.data()));
  }
  std::string text = picture.text, key = "Comment";
  if (!text.empty()) {
    png_text entry{};
    entry.compression = PNG_TEXT_COMPRESSION_zTXt;
    entry.key = key.data();
    entry.text = text.data();
    entry.text_length = text.size();
    ::png_set_text(png, info, &entry, 1);
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

/// A WebP file that keeps the pixels, or of a quality below 100 that does not.
inline std::string webp_of(const Image& image, float quality = 100) {
  const auto pixels = interleaved(image);
  const auto width = static_cast<int>(image.width), height = static_cast<int>(image.height);
  uint8_t* data = nullptr;
  const size_t size =
      quality == 100 ? ::WebPEncodeLosslessRGB(pixels.data(), width, height, 3 * width, &data)
                     : ::WebPEncodeRGB(pixels.data(), width, height, 3 * width, quality, &data);
  std::string out(reinterpret_cast<char*>(data), size);
  ::WebPFree(data);
  return out;
}

inline std::string little_endian(size_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFFU);
  return text;
}

/// A chunk of a RIFF file.
inline std::string riff_chunk(const std::string& name, const std::string& body) {
  return name + little_endian(body.size(), 4) + body + std::string(body.size() % 2, '\0');
}

/// A WebP file in the extended form: a canvas, and chunks.
inline std::string extended_webp(int64_t height, int64_t width, int flags,
                                 const std::string& chunks) {
  const std::string head =
      riff_chunk("VP8X", little_endian(static_cast<size_t>(flags), 4) +
                             little_endian(static_cast<size_t>(width - 1), 3) +
                             little_endian(static_cast<size_t>(height - 1), 3));
  return "RIFF" + little_endian(4 + head.size() + chunks.size(), 4) + "WEBP" + head + chunks;
}

/// What a WebP file holds behind "RIFF", its length and "WEBP".
inline std::string chunks_of_webp(const std::string& webp) {
  return webp.substr(12);
}

/// An animation: pictures at row and column 2 * `offset` of a canvas.
inline std::string animated_webp(int64_t height, int64_t width, size_t offset,
                                 const std::vector<Image>& frames) {
  constexpr int kAnimation = 2;
  std::string chunks = riff_chunk("ANIM", std::string(6, '\0'));
  for (const Image& frame : frames) {
    chunks += riff_chunk("ANMF", little_endian(offset, 3) + little_endian(offset, 3) +
                                     little_endian(static_cast<size_t>(frame.width - 1), 3) +
                                     little_endian(static_cast<size_t>(frame.height - 1), 3) +
                                     little_endian(100, 3) + std::string(1, '\0') +
                                     chunks_of_webp(webp_of(frame)));
  }
  return extended_webp(height, width, kAnimation, chunks);
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
