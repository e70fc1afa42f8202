#include "image/augment_options.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>

#include "base/text.h"

namespace stretto::image {

ChannelStatistics AugmentOptions::statistics() const {
  ChannelStatistics result;
  if (mean.size() != result.mean.size() || std.size() != result.deviation.size()) {
    throw std::invalid_argument("mean and std have a number for red, green and blue each");
  }
  std::copy(mean.begin(), mean.end(), result.mean.begin());
  std::copy(std.begin(), std.end(), result.deviation.begin());
  return result;
}

std::vector<AugmentConflict> augment_conflicts(const AugmentOptions& options,
                                               const std::string& section) {
  std::vector<AugmentConflict> conflicts;
  const auto key = [&](const char* name) { return section + "." + name; };
  const auto check_range = [&](const char* least, double low, const char* most, double high) {
    if (low <= high) return;
    conflicts.push_back({.keys = {key(least), key(most)},
                         .what = "is above " + key(most) + ", " + shortest(high),
                         .hint = "the range goes from " + std::string(least) + " to " + most});
  };
  const auto check_colours = [&](const char* name, const std::vector<double>& numbers) {
    if (numbers.size() == 3) return;
    conflicts.push_back({.keys = {key(name)},
                         .what = "has " + counted(static_cast<int64_t>(numbers.size()), "number"),
                         .hint = "give one each for red, green and blue"});
  };
  if (options.crop == "random_resized") {
    check_range("min_scale", options.min_scale, "max_scale", options.max_scale);
    check_range("min_ratio", options.min_ratio, "max_ratio", options.max_ratio);
  }
  if (options.erasing_probability > 0) {
    check_range("min_erasing_scale", options.min_erasing_scale, "max_erasing_scale",
                options.max_erasing_scale);
    check_range("min_erasing_ratio", options.min_erasing_ratio, "max_erasing_ratio",
                options.max_erasing_ratio);
  }
  check_colours("mean", options.mean);
  check_colours("std", options.std);
  if (std::ranges::any_of(options.test_resize,
                          [](double side) { return side != std::floor(side); })) {
    conflicts.push_back({.keys = {key("test_resize")},
                         .what = "has a length that is no whole number of pixels",
                         .hint = "give whole numbers, such as 256"});
  }
  return conflicts;
}

}  // namespace stretto::image
