#include "audio/normalise.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace stretto::audio {
namespace {

/// Normalises rows [rows, width], each column by itself. In double, in the order of rows.
void normalise_columns(std::span<float> values, size_t width, const NormaliseOptions& options) {
  const size_t rows = values.size() / width;
  std::vector<double> mean(width), scale(width);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < width; ++i) mean[i] += values[r * width + i];
  }
  for (double& sum : mean) sum /= static_cast<double>(rows);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < width; ++i) {
      const double difference = values[r * width + i] - mean[i];
      scale[i] += difference * difference;
    }
  }
  // One frame has no deviation.
  const auto divisor =
      static_cast<double>(std::max<size_t>(options.is_unbiased ? rows - 1 : rows, 1));
  for (double& squares : scale) squares = 1 / (std::sqrt(squares / divisor) + options.epsilon);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < width; ++i) {
      float& value = values[r * width + i];
      value = static_cast<float>((value - mean[i]) * scale[i]);
    }
  }
}

void require_count(const Features& features, size_t count) {
  if (count == 1 || static_cast<int64_t>(count) == features.width) return;
  throw std::invalid_argument("normalise: " + std::to_string(count) + " numbers for " +
                              std::to_string(features.width) + " features");
}

}  // namespace

void normalise(Features& features, const NormaliseOptions& options) {
  if (features.values.empty()) return;
  const bool is_joint = options.over == NormaliseOver::kAll;
  normalise_columns(features.values, is_joint ? 1 : static_cast<size_t>(features.width), options);
}

void normalise_by(Features& features, std::span<const double> mean,
                  std::span<const double> deviation) {
  require_count(features, mean.size());
  require_count(features, deviation.size());
  const auto width = static_cast<size_t>(features.width);
  for (size_t i = 0; i < features.values.size(); ++i) {
    const double less = mean.size() == 1 ? mean[0] : mean[i % width];
    const double divisor = deviation.size() == 1 ? deviation[0] : deviation[i % width];
    features.values[i] = static_cast<float>((features.values[i] - less) / divisor);
  }
}

}  // namespace stretto::audio
