#include "experiment/family_plan.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/text.h"

namespace stretto::experiment {
namespace {

constexpr double kFill = 0.9;  // units that are not padding or room at the end, of the bound

constexpr int64_t kClose = 8;  // between neighbouring widths of one proportion, at most

std::string resized_key(const ShapeKey& key, double factor) {
  const auto multiple = std::max<int64_t>(1, key.multiple);
  const double steps = std::round(double(key.value) * factor / double(multiple));
  const int64_t value = std::max(key.least, std::max<int64_t>(1, std::llround(steps)) * multiple);
  return key.key + "=" + std::to_string(value);
}

// The widest width, then that of each group of widths that are close to each other.
std::vector<int64_t> widest_of_groups(const ModelShape& shape) {
  std::vector<int64_t> values;
  for (const ShapeKey& key : shape.widths) values.push_back(key.value);
  std::ranges::sort(values, std::greater());
  std::vector<int64_t> widest;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i == 0 || values[i] * kClose < values[i - 1]) widest.push_back(values[i]);
  }
  return widest;
}

}  // namespace

PlannedWork work_within(const WorkBounds& bounds) {
  const double filled = kFill * double(bounds.max_units);
  const double sampled = double(bounds.max_samples) * bounds.sample_units;
  if (bounds.max_samples > 0 && sampled < filled) {
    return {
        .units = sampled,
        .assumed = "a micro-batch has data.max_samples = " + counted(bounds.max_samples, "sample") +
                   " of " + shortest(bounds.sample_units) + " " + bounds.unit + bounds.sample_note,
        .key = "data.max_samples"};
  }
  const char* earlier =
      bounds.max_samples > 0 ? ", though data.max_samples may end a micro-batch earlier" : "";
  return {.units = filled,
          .assumed = shortest(kFill) + " of " + bounds.key + " are " + bounds.unit + earlier,
          .key = bounds.key};
}

std::vector<std::string> resized(const ModelShape& shape, double width, double depth) {
  std::vector<std::string> overrides;
  for (const ShapeKey& key : shape.widths) overrides.push_back(resized_key(key, width));
  for (const ShapeKey& key : shape.depths) overrides.push_back(resized_key(key, depth));
  return overrides;
}

std::vector<std::string> narrowed(const ModelShape& shape, double factor) {
  const auto widest = widest_of_groups(shape);
  std::vector<std::string> overrides;
  for (const ShapeKey& key : shape.widths) {
    const auto group = std::ranges::find_if(widest.rbegin(), widest.rend(),
                                            [&](int64_t value) { return value >= key.value; });
    const double most = factor * double(widest.front());
    overrides.push_back(resized_key(key, std::min(1.0, most / double(*group))));
  }
  for (const ShapeKey& key : shape.depths) overrides.push_back(resized_key(key, 1));
  return overrides;
}

}  // namespace stretto::experiment
