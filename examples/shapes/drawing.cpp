#include "examples/shapes/drawing.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numbers>
#include <stdexcept>
#include <utility>

#include "base/random.h"

namespace stretto::shapes {
namespace {

using Colour = std::array<double, 3>;

constexpr int kSubPixels = 3;  // each way, against jagged edges
constexpr double kNoise = 12;  // standard deviation, in grey levels
constexpr double kContrast = 150;

double brightness(const Colour& colour) {
  return 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2];
}

double draw_between(RandomStream& random, double least, double most) {
  return least + (most - least) * random.uniform();
}

Colour draw_colour(RandomStream& random) {
  return {255 * random.uniform(), 255 * random.uniform(), 255 * random.uniform()};
}

// The sum of the differences of the three channels; a shape has to stand out.
double distance(const Colour& a, const Colour& b) {
  return std::abs(a[0] - b[0]) + std::abs(a[1] - b[1]) + std::abs(a[2] - b[2]) +
         std::abs(brightness(a) - brightness(b));
}

Colour draw_colour_far_from(RandomStream& random, const Colour& other) {
  Colour colour = draw_colour(random);
  while (distance(colour, other) < kContrast) colour = draw_colour(random);
  return colour;
}

// Whether a point lies in a shape of radius 1 around 0.
bool is_in_shape(std::string_view shape, double x, double y) {
  const double radius = std::hypot(x, y);
  if (shape == "circle") return radius < 0.82;
  if (shape == "ring") return radius < 0.88 && radius > 0.5;
  if (shape == "square") return std::max(std::abs(x), std::abs(y)) < 0.7;
  if (shape == "triangle") return y > -0.5 && std::numbers::sqrt3 * std::abs(x) + y < 1;
  if (shape == "cross") {
    return std::min(std::abs(x), std::abs(y)) < 0.27 && std::max(std::abs(x), std::abs(y)) < 0.88;
  }
  constexpr double kTips = 5;
  const double turn = std::atan2(y, x) / (2 * std::numbers::pi) * kTips;
  const double nearness = 2 * std::abs(turn - std::floor(turn) - 0.5);  // 1 at a tip
  return radius < 0.4 + 0.58 * std::pow(nearness, 1.5);
}

// How a shape lies in its picture.
struct Pose {
  double x = 0, y = 0, radius = 0, sine = 0, cosine = 1;
};

Pose draw_pose(RandomStream& random) {
  Pose pose;
  pose.radius = draw_between(random, 8, 14);
  const double room = kSide / 2.0 - pose.radius;
  pose.x = kSide / 2.0 + draw_between(random, -room, room);
  pose.y = kSide / 2.0 + draw_between(random, -room, room);
  const double turn = draw_between(random, -0.5, 0.5);
  pose.sine = std::sin(turn);
  pose.cosine = std::cos(turn);
  return pose;
}

// The share of a pixel that the shape covers.
double cover(std::string_view shape, const Pose& pose, int64_t row, int64_t column) {
  int inside = 0;
  for (int i = 0; i < kSubPixels * kSubPixels; ++i) {
    const double dx = static_cast<double>(column) + (i % kSubPixels + 0.5) / kSubPixels - pose.x;
    const double dy = pose.y - static_cast<double>(row) - (i / kSubPixels + 0.5) / kSubPixels;
    const double x = (pose.cosine * dx + pose.sine * dy) / pose.radius;
    const double y = (pose.cosine * dy - pose.sine * dx) / pose.radius;
    if (is_in_shape(shape, x, y)) ++inside;
  }
  return static_cast<double>(inside) / (kSubPixels * kSubPixels);
}

// A straight line through the picture, as a point and a direction.
struct Line {
  double x = 0, y = 0, dx = 0, dy = 0;

  double cover(int64_t row, int64_t column) const {
    const double across = std::abs((static_cast<double>(column) + 0.5 - x) * dy -
                                   (static_cast<double>(row) + 0.5 - y) * dx);
    return std::clamp(1.2 - across, 0.0, 1.0);
  }
};

Line draw_line(RandomStream& random) {
  const double angle = draw_between(random, 0, std::numbers::pi);
  return {.x = draw_between(random, 0, kSide),
          .y = draw_between(random, 0, kSide),
          .dx = std::cos(angle),
          .dy = std::sin(angle)};
}

Picture draw_picture(size_t shape, RandomStream& random) {
  const Colour background = draw_colour(random);
  const Colour colour = draw_colour_far_from(random, background);
  const Colour line_colour = draw_colour(random);
  const Line line = draw_line(random);
  const Pose pose = draw_pose(random);
  Picture picture{.shape = shape, .image = image::make_image(kSide, kSide)};
  for (int64_t row = 0; row < kSide; ++row) {
    for (int64_t column = 0; column < kSide; ++column) {
      const double of_line = line.cover(row, column);
      const double of_shape = cover(kShapes[shape], pose, row, column);
      for (size_t c = 0; c < colour.size(); ++c) {
        double value = background[c] + of_line * (line_colour[c] - background[c]);
        value += of_shape * (colour[c] - value) + kNoise * random.normal();
        picture.image.plane(static_cast<int64_t>(c))[static_cast<size_t>(row * kSide + column)] =
            static_cast<uint8_t>(std::clamp(std::lround(value), 0L, 255L));
      }
    }
  }
  return picture;
}

std::vector<Picture> draw_part(uint64_t seed, uint64_t number, size_t of_each) {
  std::vector<Picture> pictures;
  for (size_t shape = 0; shape < kShapes.size(); ++shape) {
    for (size_t i = 0; i < of_each; ++i) {
      RandomStream random(mix64(mix64(seed, number), shape), i);
      pictures.push_back(draw_picture(shape, random));
    }
  }
  return pictures;
}

constexpr size_t kBlock = 512;

// A header of ustar; numbers are octal texts.
std::string tar_header(const std::string& name, size_t size) {
  if (name.size() > 100) throw std::length_error("tar: a name of more than 100 bytes");
  std::string header(kBlock, '\0');
  const auto put = [&header](size_t at, std::string_view text) {
    header.replace(at, text.size(), text);
  };
  char number[16];
  std::snprintf(number, sizeof number, "%011zo", size);
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, number);
  put(136, "00000000000");
  put(148, "        ");  // the checksum counts as spaces
  put(156, "0");
  put(257, std::string_view("ustar\00000", 8));
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  std::snprintf(number, sizeof number, "%06o", sum);
  put(148, std::string_view(number, 7));  // with its NUL
  return header;
}

}  // namespace

Pictures generate(uint64_t seed, const Sizes& sizes) {
  return {.train = draw_part(seed, 0, sizes.train),
          .valid = draw_part(seed, 1, sizes.valid),
          .test = draw_part(seed, 2, sizes.test)};
}

std::string name_of(const Picture& picture, size_t number) {
  std::string digits = std::to_string(number);
  digits.insert(0, digits.size() < 4 ? 4 - digits.size() : 0, '0');
  return std::string(kShapes[picture.shape]) + "/" + digits + ".png";
}

std::string tar_of(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string archive;
  for (const auto& [name, bytes] : files) {
    archive += tar_header(name, bytes.size());
    archive += bytes;
    archive.append((kBlock - bytes.size() % kBlock) % kBlock, '\0');
  }
  archive.append(2 * kBlock, '\0');  // the end of a tar archive
  return archive;
}

}  // namespace stretto::shapes
