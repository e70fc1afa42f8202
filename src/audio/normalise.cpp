#include "audio/normalise.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace stretto::audio {
namespace {

/// Normalises every `stride`th value from the first on.
void normalise_values(float* first, size_t count, size_t stride, const NormaliseOptions& options) {
  double sum = 0, squares = 0;
  for (size_t i = 0; i < count; ++i) sum += first[i * stride];
  const double mean = sum / static_cast<double>(count);
  for (size_t i = 0; i < count; ++i) {
    const double difference = first[i * stride] - mean;
    squares += difference * difference;
  }
  // One frame has no deviation.
  const size_t divisor = std::max<size_t>(options.is_unbiased ? count - 1 : count, 1);
  const double scale = 1 / (std::sqrt(squares / static_cast<double>(divisor)) + options.epsilon);
  for (size_t i = 0; i < count; ++i) {
    first[i * stride] = static_cast<float>((first[i * stride] - mean) * scale);
  }
}

}  // namespace

void normalise(Features& features, const NormaliseOptions& options) {
  if (features.values.empty()) return;
  float* values = features.values.data();
  if (options.over == NormaliseOver::kAll) {
    normalise_values(values, features.values.size(), 1, options);
    return;
  }
  const auto width = static_cast<size_t>(features.width);
  for (size_t i = 0; i < width; ++i) {
    normalise_values(values + i, features.values.size() / width, width, options);
  }
}

}  // namespace stretto::audio
