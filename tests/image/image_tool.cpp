// Prints the bytes of a picture, for check_with_pillow.py: rows of red, green and blue.
//   image_tool FILE                            as it is decoded
//   image_tool FILE HEIGHT WIDTH FILTER        in another size: area, bilinear, bicubic
//   image_tool FILE upright                    turned as its EXIF tag says
//   image_tool FILE CHANGE FACTOR              brightness, contrast, saturation
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "image/image_file.h"
#include "image/resize.h"
#include "image/transform.h"

namespace {

using namespace stretto;

image::Image made_of(const std::vector<std::string>& words) {
  image::Image picture = image::read_image(words.at(0), {.applies_orientation = words.size() == 2});
  if (words.size() == 3) {
    const double factor = std::stod(words[2]);
    if (words[1] == "brightness") image::change_brightness(picture, factor);
    if (words[1] == "contrast") image::change_contrast(picture, factor);
    if (words[1] == "saturation") image::change_saturation(picture, factor);
  }
  if (words.size() < 4) return picture;
  const auto filter = words[3] == "area"       ? image::Filter::kArea
                      : words[3] == "bilinear" ? image::Filter::kBilinear
                                               : image::Filter::kBicubic;
  return image::resized(picture, std::stoll(words[1]), std::stoll(words[2]), filter);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const image::Image picture = made_of({argv + 1, argv + argc});
    for (size_t i = 0; i < static_cast<size_t>(picture.plane_size()); ++i) {
      for (int64_t c = 0; c < image::kChannels; ++c) std::putchar(picture.plane(c)[i]);
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
