// libFuzzer target: any bytes as the file of a picture. It is decoded to what its header says, or
// Error is thrown; nothing else may come out.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "image/exif.h"
#include "image/image_file.h"
#include "image/resize.h"
#include "image/views.h"

namespace {

using namespace stretto;

constexpr int64_t kMostPixels = 1 << 18;  // more would only take longer

void require(bool fact) {
  if (!fact) std::abort();
}

image::DecodeOptions turned() {
  return {.max_pixels = kMostPixels, .applies_orientation = true};
}

/// A part has the size of the whole, and a smaller one where it is decoded smaller.
void require_parts(std::string_view bytes, const image::Image& whole) {
  image::DecodeOptions options{.max_pixels = kMostPixels};
  const int64_t top = whole.height / 3, rows = (whole.height + 2) / 3;
  options.part = [&](int64_t height, int64_t width) {
    require(height == whole.height && width == whole.width);
    return image::DecodePart{.region = {.top = top, .height = rows, .width = width}};
  };
  const auto part = image::decode_image(bytes, "fuzz", options);
  require(part.height == whole.height && part.width == whole.width);
  options.part = [&](int64_t, int64_t) {
    return image::DecodePart{.region = image::all_of(whole), .shrink = 4};
  };
  const auto small = image::decode_image(bytes, "fuzz", options);
  require(small.height > 0 && small.height <= whole.height);
  image::AugmentOptions augment;
  augment.decoding = "scaled";
  image::TrainingView view(augment, {}, 6);
  const auto shown = view.shown(image::decode_image(bytes, "fuzz", view.decode_options()));
  require(shown.height == 6 && shown.width == 6);
}

void read_picture(std::string_view bytes) {
  const auto info = image::image_info(bytes, "fuzz", kMostPixels);
  require(info.height > 0 && info.width > 0 && info.height * info.width <= kMostPixels);
  require(info.orientation >= 1 && info.orientation <= 8);
  const auto picture = image::decode_image(bytes, "fuzz", {.max_pixels = kMostPixels});
  require(picture.height == info.height && picture.width == info.width);
  require(static_cast<int64_t>(picture.pixels.size()) == image::kChannels * picture.plane_size());
  const auto seen = image::upright(picture, info.orientation);
  require(image::decode_image(bytes, "fuzz", turned()).pixels == seen.pixels);
  require_parts(bytes, picture);
  require(seen.plane_size() == picture.plane_size());
  require(image::resized(seen, 5, 9).plane_size() == 45);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const int orientation = image::exif_orientation(bytes);
  require(orientation >= 1 && orientation <= 8);
  try {
    read_picture(bytes);
  } catch (const Error&) {
  }
  return 0;
}
