#include "families/speech_synthesis/engine/matrix_picture.h"

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "image/encode_png.h"
#include "image/image.h"

namespace stretto::tasks {
namespace {

constexpr int64_t kLeastHeight = 160, kLeastWidth = 320;  // that a picture is enlarged to
constexpr int64_t kMostColumns = 960, kMostRows = 640;

using Colour = std::array<double, image::kChannels>;
// From the lowest number to the highest, equally far apart: black, violet, red, yellow, white.
constexpr std::array<Colour, 5> kColours{Colour{0, 0, 4}, Colour{87, 16, 110}, Colour{188, 55, 84},
                                         Colour{249, 142, 9}, Colour{252, 255, 220}};

/// @param share  from 0 to 1
uint8_t shade(double share, int64_t channel) {
  const double place = share * static_cast<double>(kColours.size() - 1);
  const size_t below = std::min(static_cast<size_t>(place), kColours.size() - 2);
  const double above = place - static_cast<double>(below);
  const auto c = static_cast<size_t>(channel);
  return static_cast<uint8_t>(
      std::lround(kColours[below][c] * (1 - above) + kColours[below + 1][c] * above));
}

// How often a side fits into the least one, rounded up.
int64_t times_into(int64_t least, int64_t side) {
  return std::max<int64_t>(1, (least + side - 1) / side);
}

// The shares that numbers are drawn with, [rows, columns] of the matrix, between 0 and 1.
at::Tensor shares_of(const at::Tensor& matrix) {
  at::Tensor numbers = matrix.detach().to(at::kCPU, at::kDouble);
  const at::Tensor finite = numbers.isfinite();
  const at::Tensor known = numbers.masked_select(finite);
  if (known.numel() == 0) return at::zeros_like(numbers);
  const double least = known.min().item<double>(), most = known.max().item<double>();
  numbers = at::where(finite, numbers, at::full_like(numbers, least));
  return numbers.sub(least).div(most > least ? most - least : 1).contiguous();
}

image::Image drawn_matrix(const at::Tensor& shares) {
  const int64_t columns = shares.size(0), rows = shares.size(1);
  const int64_t down = times_into(kLeastHeight, rows), across = times_into(kLeastWidth, columns);
  auto picture = image::make_image(rows * down, columns * across);
  const auto* numbers = shares.const_data_ptr<double>();
  for (int64_t channel = 0; channel < image::kChannels; ++channel) {
    const auto plane = picture.plane(channel);
    for (int64_t y = 0; y < picture.height; ++y) {
      const int64_t row = rows - 1 - y / down;
      for (int64_t x = 0; x < picture.width; ++x) {
        plane[static_cast<size_t>(y * picture.width + x)] =
            shade(numbers[x / across * rows + row], channel);
      }
    }
  }
  return picture;
}

}  // namespace

report::MediaSample matrix_sample(const at::Tensor& matrix, std::string words, std::string note) {
  report::MediaSample sample{
      .mime = "image/png", .bytes = {}, .words = std::move(words), .note = std::move(note)};
  if (matrix.numel() == 0) return sample;
  const int64_t every = times_into(matrix.size(0), kMostColumns);
  const int64_t each = times_into(matrix.size(1), kMostRows);
  const at::Tensor part = matrix.slice(0, 0, c10::nullopt, every).slice(1, 0, c10::nullopt, each);
  sample.bytes = image::encode_png(drawn_matrix(shares_of(part)));
  return sample;
}

}  // namespace stretto::tasks
