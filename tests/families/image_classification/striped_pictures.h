#pragma once

#include <cstdint>
#include <string>

#include "image/encode_png.h"
#include "image/image.h"
#include "tests/base/temp_dir.h"

/// Pictures that a small model soon tells apart.
namespace stretto::testing {

inline constexpr int64_t kStripedSide = 16;

/// Stripes of rows or of columns, which no mirror turns, or an even grey. @param name  of the class
inline image::Image striped_picture(const std::string& name, int64_t number,
                                    int64_t side = kStripedSide) {
  auto picture = image::make_image(side, side);
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      const int64_t place = name == "rows" ? y : name == "columns" ? x : 0;
      const bool is_light = name != "grey" && (place / 2 + number) % 2 == 0;
      const auto value =
          static_cast<uint8_t>(is_light ? 200 + number % 50 : 40 + (7 * number + x) % 30);
      for (int64_t channel = 0; channel < image::kChannels; ++channel) {
        picture.plane(channel)[static_cast<size_t>(y * side + x)] = value;
      }
    }
  }
  return picture;
}

/// Writes FOLDER/SET/NAME/NUMBER.png; its path.
inline std::string put_picture(const TempDir& folder, const std::string& set,
                               const std::string& name, int64_t number) {
  return folder.write(set + "/" + name + "/" + std::to_string(number) + ".png",
                      image::encode_png(striped_picture(name, number)));
}

/// A folder for each of three classes, with so many pictures each.
inline void put_pictures(const TempDir& folder, const std::string& set, int64_t count,
                         int64_t first = 0) {
  for (const char* name : {"columns", "grey", "rows"}) {
    for (int64_t i = 0; i < count; ++i) put_picture(folder, set, name, first + i);
  }
}

}  // namespace stretto::testing
