#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "image/image.h"

namespace stretto::shapes {

/// What a picture shows: its class.
inline constexpr std::array<std::string_view, 6> kShapes{"circle", "cross", "ring",
                                                         "square", "star",  "triangle"};
inline constexpr int64_t kSide = 32;

/// A picture of one shape.
struct Picture {
  size_t shape = 0;    ///< its place in kShapes
  image::Image image;  ///< kSide x kSide
};

/// Pictures of each shape, in each part.
struct Sizes {
  size_t train = 400, valid = 80, test = 20;
};

struct Pictures {
  std::vector<Picture> train, valid, test;
};

/// The pictures of a seed: a function of seed and sizes alone.
///
/// A shape has any colour, size, place and turn; a line of another colour crosses the picture, and
/// each pixel has noise. Colours therefore do not tell the shape.
Pictures generate(uint64_t seed, const Sizes& sizes = {});

/// The name of a picture in its part: "star/0017.png". @param number  among those of its shape
std::string name_of(const Picture& picture, size_t number);

/// Some files as a tar archive (POSIX ustar), with the times of 1970. Throws std::length_error for
/// a name of more than 100 bytes.
std::string tar_of(const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace stretto::shapes
