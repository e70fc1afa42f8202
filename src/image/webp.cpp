#include <webp/decode.h>
#include <webp/demux.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "image/codecs.h"
#include "image/exif.h"

namespace stretto::image {
namespace {

constexpr const char* kWebpDamaged = "fetch or convert it once more, or leave it out";

/// The chunks of a file.
struct WebpFile {
  WebpFile(std::string_view file, const std::string& name, int64_t max_pixels) {
    const WebPData data{reinterpret_cast<const uint8_t*>(file.data()), file.size()};
    WebPDemuxState state = WEBP_DEMUX_PARSE_ERROR;
    chunks.reset(::WebPDemuxPartial(&data, &state));
    if (state == WEBP_DEMUX_PARSE_ERROR) refuse_image(name, "is damaged", kWebpDamaged);
    if (state == WEBP_DEMUX_PARSING_HEADER || !chunks) {
      refuse_image(name, "is cut off", kWebpDamaged);
    }
    require_size(fact(WEBP_FF_CANVAS_HEIGHT), fact(WEBP_FF_CANVAS_WIDTH), max_pixels, name);
    if (state != WEBP_DEMUX_DONE) refuse_image(name, "is cut off", kWebpDamaged);
  }

  int64_t fact(WebPFormatFeature feature) const { return ::WebPDemuxGetI(chunks.get(), feature); }
  int orientation() const {
    WebPChunkIterator chunk;
    if (::WebPDemuxGetChunk(chunks.get(), "EXIF", 1, &chunk) == 0) return 1;
    const int found =
        exif_orientation({reinterpret_cast<const char*>(chunk.chunk.bytes), chunk.chunk.size});
    ::WebPDemuxReleaseChunkIterator(&chunk);
    return found;
  }

  struct Deleter {
    void operator()(WebPDemuxer* demuxer) const { ::WebPDemuxDelete(demuxer); }
  };
  std::unique_ptr<WebPDemuxer, Deleter> chunks;
};

/// The first picture of an animation, or the only one; it may cover a part of the canvas.
struct FirstFrame {
  FirstFrame(const WebpFile& file, const std::string& name) {
    if (::WebPDemuxGetFrame(file.chunks.get(), 1, &frame) == 0) {
      refuse_image(name, "has no picture in it", kWebpDamaged);
    }
  }
  ~FirstFrame() { ::WebPDemuxReleaseIterator(&frame); }
  FirstFrame(const FirstFrame&) = delete;
  FirstFrame& operator=(const FirstFrame&) = delete;

  WebPIterator frame{};
};

}  // namespace

ImageInfo webp_info(std::string_view bytes, const std::string& name, int64_t max_pixels) {
  const WebpFile file(bytes, name, max_pixels);
  return {.format = ImageFormat::kWebp,
          .height = file.fact(WEBP_FF_CANVAS_HEIGHT),
          .width = file.fact(WEBP_FF_CANVAS_WIDTH),
          .channels = (file.fact(WEBP_FF_FORMAT_FLAGS) & ALPHA_FLAG) != 0 ? 4 : 3,
          .orientation = file.orientation()};
}

Image decode_webp(std::string_view bytes, const std::string& name, const DecodeOptions& options) {
  const WebpFile file(bytes, name, options.max_pixels);
  const FirstFrame first(file, name);
  const auto& frame = first.frame;
  Image image = make_image(file.fact(WEBP_FF_CANVAS_HEIGHT), file.fact(WEBP_FF_CANVAS_WIDTH));
  WebPDecoderConfig config;
  if (::WebPInitDecoderConfig(&config) == 0 ||
      ::WebPGetFeatures(frame.fragment.bytes, frame.fragment.size, &config.input) !=
          VP8_STATUS_OK) {
    refuse_image(name, "is damaged", kWebpDamaged);
  }
  if (config.input.width != frame.width || config.input.height != frame.height ||
      frame.x_offset + frame.width > image.width || frame.y_offset + frame.height > image.height) {
    refuse_image(name, "is damaged: its header and its pixels are of two sizes", kWebpDamaged);
  }
  // What the frame leaves free is black. Alpha is dropped: colours under it stay as they are.
  const auto stride = static_cast<size_t>(kChannels * frame.width);
  std::vector<uint8_t> pixels(stride * static_cast<size_t>(frame.height));
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {
      .rgba = pixels.data(), .stride = static_cast<int>(stride), .size = pixels.size()};
  const auto status = ::WebPDecode(frame.fragment.bytes, frame.fragment.size, &config);
  if (status != VP8_STATUS_OK) {
    const bool is_short = status == VP8_STATUS_NOT_ENOUGH_DATA || status == VP8_STATUS_SUSPENDED;
    refuse_image(name, is_short ? "is cut off" : "is damaged", kWebpDamaged);
  }
  for (int64_t y = 0; y < frame.height; ++y) {
    put_row_part(pixels.data() + static_cast<size_t>(y) * stride, frame.y_offset + y,
                 frame.x_offset, frame.width, image);
  }
  return image;
}

}  // namespace stretto::image
