#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "image/image_file.h"

/// One decoder for each format; image_file.h is their interface.
namespace stretto::image {

inline constexpr const char* kImageAdvice = "convert it to JPEG, PNG or WebP, or leave it out";

/// Throws Error(kBadData) as "NAME: WHAT".
[[noreturn]] void refuse_image(const std::string& name, const std::string& what,
                               const std::string& advice = kImageAdvice);
/// Throws for a picture above a bound, or without pixels.
void require_size(int64_t height, int64_t width, int64_t max_pixels, const std::string& name);

ImageInfo jpeg_info(std::string_view bytes, const std::string& name, int64_t max_pixels);
Image decode_jpeg(std::string_view bytes, const std::string& name, const DecodeOptions& options);
ImageInfo png_info(std::string_view bytes, const std::string& name, int64_t max_pixels);
Image decode_png(std::string_view bytes, const std::string& name, const DecodeOptions& options);

ImageInfo webp_info(std::string_view bytes, const std::string& name, int64_t max_pixels);
Image decode_webp(std::string_view bytes, const std::string& name, const DecodeOptions& options);

/// Copies a row of interleaved RGB to the planes of a picture.
void put_row(const uint8_t* rgb, int64_t row, Image& image);
/// The same for `count` pixels from `column` on.
void put_row_part(const uint8_t* rgb, int64_t row, int64_t column, int64_t count, Image& image);

}  // namespace stretto::image
