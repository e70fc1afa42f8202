// Prints the bytes of a picture, for check_with_pillow.py: rows of red, green and blue.
//   image_tool FILE                            as it is decoded
//   image_tool FILE HEIGHT WIDTH FILTER        in another size: area, bilinear, bicubic
//   image_tool FILE upright                    turned as its EXIF tag says
//   image_tool FILE CHANGE AMOUNT              brightness, sharpness, rotate, …: changed()
//   image_tool --lines                         the same for each line of standard input, words
//                                              between tabs; the height and width, in a line of
//                                              text, stand in front of each picture
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "image/image_file.h"
#include "image/policy_changes.h"
#include "image/resize.h"
#include "image/transform.h"

namespace {

using namespace stretto;
using image::Image;

using Change = std::function<void(Image&, double)>;

const std::map<std::string, Change>& changes() {
  static const std::map<std::string, Change> all{
      {"brightness", image::change_brightness},
      {"contrast", image::change_contrast},
      {"saturation", image::change_saturation},
      {"sharpness", image::change_sharpness},
      {"solarize", image::solarize},
      {"posterize", [](Image& i, double bits) { image::posterize(i, static_cast<int>(bits)); }},
      {"auto_contrast", [](Image& i, double) { image::auto_contrast(i); }},
      {"equalize", [](Image& i, double) { image::equalize(i); }},
      {"rotate", [](Image& i, double degrees) { i = image::rotated(i, degrees); }},
      {"shear_x", [](Image& i, double slope) { i = image::sheared_x(i, slope); }},
      {"shear_y", [](Image& i, double slope) { i = image::sheared_y(i, slope); }},
      {"translate_x",
       [](Image& i, double by) { i = image::translated(i, static_cast<int64_t>(by), 0); }},
      {"translate_y",
       [](Image& i, double by) { i = image::translated(i, 0, static_cast<int64_t>(by)); }},
  };
  return all;
}

Image made_of(const std::vector<std::string>& words) {
  Image picture = image::read_image(words.at(0), {.applies_orientation = words.size() == 2});
  if (words.size() == 3) changes().at(words[1])(picture, std::stod(words[2]));
  if (words.size() < 4) return picture;
  const auto filter = words[3] == "area"       ? image::Filter::kArea
                      : words[3] == "bilinear" ? image::Filter::kBilinear
                                               : image::Filter::kBicubic;
  return image::resized(picture, std::stoll(words[1]), std::stoll(words[2]), filter);
}

void print(const Image& picture) {
  for (size_t i = 0; i < static_cast<size_t>(picture.plane_size()); ++i) {
    for (int64_t c = 0; c < image::kChannels; ++c) std::putchar(picture.plane(c)[i]);
  }
}

void print_lines() {
  for (std::string line; std::getline(std::cin, line);) {
    const Image picture = made_of(split(line, '\t'));
    std::printf("%lld %lld\n", static_cast<long long>(picture.height),
                static_cast<long long>(picture.width));
    print(picture);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> words{argv + 1, argv + argc};
    if (words == std::vector<std::string>{"--lines"}) {
      print_lines();
    } else {
      print(made_of(words));
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
