// jerror.h numbers its messages as jpeglib.h, before it, has been configured.
// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "image/codecs.h"
#include "image/exif.h"

namespace stretto::image {
namespace {

using std::string_view_literals::operator""sv;

constexpr unsigned kExifMarker = JPEG_APP0 + 1, kMostMarkerBytes = 0xFFFF;
// Each scan of a progressive file costs time for all pixels, whatever it holds.
constexpr int kMostScans = 100;
constexpr const char* kJpegDamaged = "fetch or convert it once more, or leave it out";

/// libjpeg leaves by longjmp(), which runs no destructors: it is called by run() alone, through
/// functions that have no objects of their own.
struct JpegJob {
  explicit JpegJob(std::string_view file) : bytes(file) {
    input.err = ::jpeg_std_error(&errors);
    errors.error_exit = [](j_common_ptr c) {
      auto& job = job_of(c);
      c->err->format_message(c, job.message.data());
      std::longjmp(job.jump, 1);
    };
    errors.emit_message = [](j_common_ptr c, int level) {
      if (level < 0 && is_damage(c->err->msg_code)) c->err->error_exit(c);
    };
    progress.progress_monitor = [](j_common_ptr c) {
      auto& job = job_of(c);
      if (job.input.input_scan_number <= kMostScans) return;
      job.has_too_many_scans = true;
      std::longjmp(job.jump, 1);
    };
    input.client_data = this;
  }
  ~JpegJob() { ::jpeg_destroy_decompress(&input); }
  JpegJob(const JpegJob&) = delete;
  JpegJob& operator=(const JpegJob&) = delete;

  static JpegJob& job_of(j_common_ptr c) { return *static_cast<JpegJob*>(c->client_data); }
  /// Warnings after which pixels are made up; libjpeg would go on.
  static bool is_damage(int code) {
    return code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
           code == JWRN_MUST_RESYNC || code == JWRN_ARITH_BAD_CODE;
  }

  /// @return false where libjpeg failed
  [[gnu::noinline]] bool run(void (*step)(JpegJob&)) {
    if (setjmp(jump) != 0) return false;
    step(*this);
    return true;
  }
  std::string failure() const {
    if (has_too_many_scans) return "has more than " + std::to_string(kMostScans) + " scans";
    if (errors.msg_code == JWRN_JPEG_EOF) return "is cut off";
    return "is damaged: " + printable(message.data());
  }

  std::string_view bytes;
  jpeg_decompress_struct input{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf jump{};
  std::array<char, JMSG_LENGTH_MAX> message{};
  bool has_too_many_scans = false;
  uint8_t* row = nullptr;  ///< where the next row of pixels goes
  unsigned skipped = 0;    ///< rows above the part that is decoded
};

void read_header(JpegJob& job) {
  ::jpeg_create_decompress(&job.input);
  job.input.progress = &job.progress;
  ::jpeg_save_markers(&job.input, static_cast<int>(kExifMarker), kMostMarkerBytes);
  ::jpeg_mem_src(&job.input, reinterpret_cast<const unsigned char*>(job.bytes.data()),
                 static_cast<unsigned long>(job.bytes.size()));
  ::jpeg_read_header(&job.input, TRUE);
}

void read_row(JpegJob& job) {
  // One row at a time; 0 only where the source is suspended, which memory never is.
  ::jpeg_read_scanlines(&job.input, &job.row, 1);
}

int orientation_of(const jpeg_decompress_struct& input) {
  for (auto* marker = input.marker_list; marker != nullptr; marker = marker->next) {
    if (marker->marker != static_cast<int>(kExifMarker)) continue;
    const int orientation =
        exif_orientation({reinterpret_cast<const char*>(marker->data), marker->data_length});
    if (orientation != 1) return orientation;
  }
  return 1;
}

void open_jpeg(JpegJob& job, const std::string& name, int64_t max_pixels) {
  if (!job.run(&read_header)) refuse_image(name, job.failure(), kJpegDamaged);
  require_size(job.input.image_height, job.input.image_width, max_pixels, name);
}

/// The colours that rows are decoded to.
J_COLOR_SPACE decoded_space(const jpeg_decompress_struct& input, const std::string& name) {
  switch (input.jpeg_color_space) {
    case JCS_GRAYSCALE:
      return JCS_GRAYSCALE;
    case JCS_RGB:
    case JCS_YCbCr:
      return JCS_RGB;
    case JCS_CMYK:
    case JCS_YCCK:
      return JCS_CMYK;
    default:
      refuse_image(
          name, "has " + counted(input.num_components, "colour component") + " of an unknown kind");
  }
}

uint8_t product_of_255ths(unsigned a, unsigned b) {
  const unsigned product = a * b + 128;
  return static_cast<uint8_t>(((product >> 8) + product) >> 8);
}

/// A row of Adobe's inverted CMYK as RGB, in place of its first three quarters, as Pillow has it.
void cmyk_to_rgb(std::vector<uint8_t>& row) {
  for (size_t from = 0, to = 0; from + 3 < row.size(); from += 4, to += 3) {
    const unsigned black = row[from + 3];
    const std::array<unsigned, 3> inks{255U - row[from], 255U - row[from + 1],
                                       255U - row[from + 2]};
    for (size_t c = 0; c < inks.size(); ++c) {
      row[to + c] = static_cast<uint8_t>(black - product_of_255ths(inks[c], black));
    }
  }
}

void put_grey_row(const std::vector<uint8_t>& row, int64_t number, Image& image) {
  for (int64_t c = 0; c < kChannels; ++c) {
    std::copy_n(row.begin(), image.width, image.plane(c).begin() + number * image.width);
  }
}

/// Whether the marker of the end stands at the end of a file, but for zeros behind it.
bool has_end(std::string_view bytes) {
  const size_t last = bytes.find_last_not_of('\0');
  return last != std::string_view::npos && bytes.substr(0, last + 1).ends_with("\xFF\xD9"sv);
}

/// Whether a file can hold the pixels that its header says: Huffman codes take a bit at least for
/// each block of 8 x 8. Otherwise a hundred bytes would take half a gigabyte before they turn out
/// to be cut off.
bool may_be_whole(const jpeg_decompress_struct& input, size_t bytes) {
  if (input.arith_code != 0) return true;
  constexpr uint64_t kBits = 8;
  uint64_t most_blocks = 0;  // of a component
  for (int i = 0; i < input.num_components; ++i) {
    const auto& its = input.comp_info[i];
    most_blocks = std::max(most_blocks, uint64_t{its.width_in_blocks} * its.height_in_blocks);
  }
  return most_blocks / kBits <= bytes;
}

/// The part that is asked for, in the picture as it is stored.
DecodePart part_for(const jpeg_decompress_struct& input, int orientation,
                    const DecodeOptions& options) {
  const Region whole{.height = input.image_height, .width = input.image_width};
  if (!options.part) return {.region = whole, .shrink = options.shrink};
  const bool is_transposed = orientation >= 5;
  return is_transposed ? options.part(whole.width, whole.height)
                       : options.part(whole.height, whole.width);
}

}  // namespace

ImageInfo jpeg_info(std::string_view bytes, const std::string& name, int64_t max_pixels) {
  JpegJob job(bytes);
  open_jpeg(job, name, max_pixels);
  return {.format = ImageFormat::kJpeg,
          .height = job.input.image_height,
          .width = job.input.image_width,
          .channels = job.input.num_components,
          .orientation = orientation_of(job.input)};
}

Image decode_jpeg(std::string_view bytes, const std::string& name, const DecodeOptions& options) {
  JpegJob job(bytes);
  open_jpeg(job, name, options.max_pixels);
  if (!may_be_whole(job.input, bytes.size())) {
    refuse_image(name, "is cut off: it is too short for the size in its header", kJpegDamaged);
  }
  const int orientation = options.applies_orientation ? orientation_of(job.input) : 1;
  const DecodePart part = part_for(job.input, orientation, options);
  auto& input = job.input;
  input.out_color_space = decoded_space(input, name);
  input.dct_method = JDCT_ISLOW;
  input.do_fancy_upsampling = TRUE;
  input.scale_num = 1;
  input.scale_denom = static_cast<unsigned>(part.shrink);
  const auto fail = [&] { refuse_image(name, job.failure(), kJpegDamaged); };
  if (!job.run([](JpegJob& j) { ::jpeg_start_decompress(&j.input); })) fail();
  Image image = make_image(input.output_height, input.output_width);
  int64_t first = 0, end = image.height;
  // A file without its end is read through, so that it is found to be cut off. One of several scans
  // has been read by now.
  if (orientation == 1 && has_end(bytes)) {
    const Region& wanted = part.region;
    const int64_t below = wanted.top + wanted.height + part.shrink - 1;
    if (::jpeg_has_multiple_scans(&input) == 0) {
      first = std::clamp<int64_t>(wanted.top / part.shrink, 0, image.height);
    }
    end = std::clamp<int64_t>(below / part.shrink, first, image.height);
  }
  job.skipped = static_cast<unsigned>(first);
  if (first > 0 && !job.run([](JpegJob& j) { ::jpeg_skip_scanlines(&j.input, j.skipped); })) fail();
  std::vector<uint8_t> row(size_t{input.output_width} *
                           static_cast<size_t>(input.output_components));
  job.row = row.data();
  for (int64_t y = first; y < end; ++y) {
    if (!job.run(&read_row)) fail();
    if (input.out_color_space == JCS_GRAYSCALE) {
      put_grey_row(row, y, image);
      continue;
    }
    if (input.out_color_space == JCS_CMYK) cmyk_to_rgb(row);
    put_row(row.data(), y, image);
  }
  return upright(std::move(image), orientation);
}

}  // namespace stretto::image
