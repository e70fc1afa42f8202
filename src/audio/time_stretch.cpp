#include "audio/time_stretch.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <stdexcept>

#include "audio/windows.h"

namespace stretto::audio {
namespace {

constexpr double kStretchWindowSeconds = 0.03, kSearchSeconds = 0.0075;
constexpr double kLeastTempo = 0.1, kMostTempo = 10;
constexpr int64_t kCoarse = 4;  ///< step of the first search, in places and in samples
constexpr float kLeastWeight = 1e-3F;

/// A sound that is silent beyond its ends.
class Endless {
 public:
  explicit Endless(std::span<const float> samples) : samples_(samples) {}

  float at(int64_t place) const {
    return place >= 0 && place < std::ssize(samples_) ? samples_[static_cast<size_t>(place)] : 0;
  }
  /// How alike two parts of it are: their product over the size of the second.
  double likeness(int64_t wanted, int64_t place, int64_t count, int64_t step) const {
    double product = 0, squares = 0;
    for (int64_t i = 0; i < count; i += step) {
      const double sample = at(place + i);
      product += at(wanted + i) * sample;
      squares += sample * sample;
    }
    return squares > 0 ? product / std::sqrt(squares) : 0;
  }

 private:
  std::span<const float> samples_;
};

/// The place near `expected` whose samples continue best as those from `wanted` on do.
int64_t best_place(const Endless& sound, int64_t wanted, int64_t expected, int64_t reach,
                   int64_t count) {
  int64_t best = expected;
  const auto search = [&](int64_t from, int64_t to, int64_t step) {
    double most = -std::numeric_limits<double>::infinity();
    int64_t found = best;
    for (int64_t place = from; place <= to; place += step) {
      const double likeness = sound.likeness(wanted, place, count, step);
      if (likeness <= most) continue;
      most = likeness;
      found = place;
    }
    best = found;
  };
  search(expected - reach, expected + reach, kCoarse);
  search(std::max(best - kCoarse + 1, expected - reach),
         std::min(best + kCoarse - 1, expected + reach), 1);
  return best;
}

}  // namespace

std::vector<float> stretched(std::span<const float> samples, int64_t rate, double tempo) {
  if (rate <= 0 || !(tempo >= kLeastTempo && tempo <= kMostTempo)) {
    throw std::invalid_argument("stretched: a rate above 0, and a tempo of 0.1 to 10");
  }
  if (tempo == 1 || samples.empty()) return {samples.begin(), samples.end()};
  const auto rate_hz = static_cast<double>(rate);
  const int64_t hop = std::max<int64_t>(std::llround(rate_hz * kStretchWindowSeconds / 2), 1);
  const auto reach = static_cast<int64_t>(rate_hz * kSearchSeconds);
  const auto size = static_cast<int64_t>(std::llround(static_cast<double>(samples.size()) / tempo));
  const auto window = window_of(Window::kHann, WindowSymmetry::kPeriodic, 2 * hop);
  const Endless sound(samples);
  std::vector<float> result(static_cast<size_t>(size)), weights(static_cast<size_t>(size));
  int64_t place = 0;
  for (int64_t begin = 0; begin < size; begin += hop) {
    if (begin > 0) {
      const auto expected = static_cast<int64_t>(std::llround(static_cast<double>(begin) * tempo));
      place = best_place(sound, /*wanted=*/place + hop, expected, reach, 2 * hop);
    }
    for (int64_t i = 0; i < std::min(2 * hop, size - begin); ++i) {
      const auto at = static_cast<size_t>(begin + i);
      result[at] += window[static_cast<size_t>(i)] * sound.at(place + i);
      weights[at] += window[static_cast<size_t>(i)];
    }
  }
  // The windows add up to 1 but in the first half of the first one.
  for (size_t i = 0; i < result.size(); ++i) result[i] /= std::max(weights[i], kLeastWeight);
  return result;
}

}  // namespace stretto::audio
