#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "image/codecs.h"
#include "image/exif.h"

namespace stretto::image {
namespace {

constexpr size_t kMostChunkBytes = size_t{8} << 20;  // of a chunk that is unpacked into memory
constexpr const char* kPngDamaged = "fetch or convert it once more, or leave it out";
constexpr const char* kCutOff = "cut off";
// One byte of DEFLATE unpacks to 1,032 at most.
constexpr size_t kMostExpansion = 1032;
// Chunks that say nothing of the pixels here: texts, a colour profile, a suggested palette. libpng
// would unpack a thousand of them, 8 MB each.
constexpr png_byte kUnreadChunks[] = "tEXt\0zTXt\0iTXt\0iCCP\0sPLT";
constexpr int kChunkNameBytes = 5;

/// libpng leaves by longjmp(), which runs no destructors: it is called by run() alone, through
/// functions that have no objects of their own.
struct PngJob {
  explicit PngJob(std::string_view file) : rest(file) {
    png = ::png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &on_error, &on_warning);
    info = png == nullptr ? nullptr : ::png_create_info_struct(png);
    if (info == nullptr) {
      ::png_destroy_read_struct(&png, nullptr, nullptr);
      throw std::bad_alloc();
    }
    ::png_set_read_fn(png, this, &read);
    ::png_set_chunk_malloc_max(png, kMostChunkBytes);
  }
  ~PngJob() { ::png_destroy_read_struct(&png, &info, nullptr); }
  PngJob(const PngJob&) = delete;
  PngJob& operator=(const PngJob&) = delete;

  [[noreturn]] static void on_error(png_structp png, png_const_charp what) {
    auto& job = *static_cast<PngJob*>(::png_get_error_ptr(png));
    std::strncpy(job.message.data(), what, job.message.size() - 1);
    ::png_longjmp(png, 1);
  }
  static void on_warning(png_structp /*png*/, png_const_charp /*what*/) {}
  static void read(png_structp png, png_bytep to, size_t size) {
    auto& job = *static_cast<PngJob*>(::png_get_io_ptr(png));
    if (size > job.rest.size()) ::png_error(png, kCutOff);
    std::memcpy(to, job.rest.data(), size);
    job.rest.remove_prefix(size);
  }

  /// @return false where libpng failed
  [[gnu::noinline]] bool run(void (*step)(PngJob&)) {
    if (setjmp(png_jmpbuf(png)) != 0) return false;
    step(*this);
    return true;
  }
  [[noreturn]] void fail(const std::string& name) const {
    const std::string what = message.data();
    refuse_image(name, what == kCutOff ? "is cut off" : "is damaged: " + printable(what),
                 kPngDamaged);
  }

  std::string_view rest;
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::array<char, 200> message{};
  std::vector<png_bytep> rows;
};

void read_header(PngJob& job) {
  ::png_set_keep_unknown_chunks(job.png, PNG_HANDLE_CHUNK_NEVER, kUnreadChunks,
                                static_cast<int>(sizeof kUnreadChunks) / kChunkNameBytes);
  ::png_read_info(job.png, job.info);
}

void open_png(PngJob& job, const std::string& name, int64_t max_pixels) {
  if (!job.run(&read_header)) job.fail(name);
  require_size(::png_get_image_height(job.png, job.info), ::png_get_image_width(job.png, job.info),
               max_pixels, name);
}

bool is_wide_grey(const PngJob& job) {
  return ::png_get_color_type(job.png, job.info) == PNG_COLOR_TYPE_GRAY &&
         ::png_get_bit_depth(job.png, job.info) == 16;
}

/// Grey of 16 bits is cut at 255: that is what Pillow makes of it, which keeps it as numbers. Of
/// colours, and of grey with alpha, it takes the upper eight bits.
void put_wide_grey_row(const uint8_t* row, int64_t number, Image& image) {
  uint8_t* red = image.pixels.data() + number * image.width;
  for (int64_t x = 0; x < image.width; ++x) red[x] = row[2 * x] != 0 ? 255 : row[2 * x + 1];
  for (int64_t c = 1; c < kChannels; ++c) {
    std::copy_n(red, image.width, red + c * image.plane_size());
  }
}

int orientation_of(PngJob& job) {
  png_bytep exif = nullptr;
  png_uint_32 size = 0;
  if (::png_get_eXIf_1(job.png, job.info, &size, &exif) == 0) return 1;
  return exif_orientation({reinterpret_cast<const char*>(exif), size});
}

/// Whatever is stored becomes eight bits of red, green and blue; grey of 16 bits stays.
void ask_for_rgb(PngJob& job) {
  if (is_wide_grey(job)) {
    ::png_set_interlace_handling(job.png);
    ::png_read_update_info(job.png, job.info);
    return;
  }
  ::png_set_expand(job.png);
  ::png_set_strip_16(job.png);
  ::png_set_strip_alpha(job.png);
  ::png_set_gray_to_rgb(job.png);
  ::png_set_interlace_handling(job.png);
  ::png_read_update_info(job.png, job.info);
}

}  // namespace

ImageInfo png_info(std::string_view bytes, const std::string& name, int64_t max_pixels) {
  PngJob job(bytes);
  open_png(job, name, max_pixels);
  return {.format = ImageFormat::kPng,
          .height = ::png_get_image_height(job.png, job.info),
          .width = ::png_get_image_width(job.png, job.info),
          .channels = ::png_get_color_type(job.png, job.info) == PNG_COLOR_TYPE_PALETTE
                          ? kChannels
                          : ::png_get_channels(job.png, job.info),
          .orientation = orientation_of(job)};
}

Image decode_png(std::string_view bytes, const std::string& name, const DecodeOptions& options) {
  PngJob job(bytes);
  open_png(job, name, options.max_pixels);
  // Otherwise a hundred bytes would take half a gigabyte before they turn out to be cut off.
  if (::png_get_rowbytes(job.png, job.info) / kMostExpansion *
          ::png_get_image_height(job.png, job.info) >
      bytes.size()) {
    refuse_image(name, "is cut off: it is too short for the size in its header", kPngDamaged);
  }
  if (!job.run(&ask_for_rgb)) job.fail(name);
  Image image = make_image(::png_get_image_height(job.png, job.info),
                           ::png_get_image_width(job.png, job.info));
  const bool is_wide = is_wide_grey(job);
  const auto row_bytes = static_cast<size_t>((is_wide ? 2 : kChannels) * image.width);
  if (::png_get_rowbytes(job.png, job.info) != row_bytes) refuse_image(name, "has unknown colours");
  // Interlaced rows come in several passes.
  std::vector<uint8_t> pixels(row_bytes * static_cast<size_t>(image.height));
  for (size_t y = 0; std::cmp_less(y, image.height); ++y) {
    job.rows.push_back(pixels.data() + y * row_bytes);
  }
  if (!job.run([](PngJob& j) { ::png_read_image(j.png, j.rows.data()); })) job.fail(name);
  for (int64_t y = 0; y < image.height; ++y) {
    const uint8_t* row = pixels.data() + static_cast<size_t>(y) * row_bytes;
    is_wide ? put_wide_grey_row(row, y, image) : put_row(row, y, image);
  }
  return image;
}

}  // namespace stretto::image
