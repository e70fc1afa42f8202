#include "audio/convolve.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <stdexcept>

#include "audio/real_fft.h"

namespace stretto::audio {
namespace {

constexpr uint64_t kLeastBlock = 1024;

double square_sum(std::span<const float> samples) {
  double sum = 0;
  for (const float sample : samples) sum += static_cast<double>(sample) * sample;
  return sum;
}

}  // namespace

std::vector<float> convolved(std::span<const float> samples, std::span<const float> impulse) {
  if (samples.empty() || impulse.empty()) return {};
  // Blocks and the impulse response have half of the transform each.
  const auto size = static_cast<int64_t>(
      2 * std::bit_ceil(std::max(static_cast<uint64_t>(impulse.size()), kLeastBlock)));
  const int64_t block = size - std::ssize(impulse) + 1;
  RealFft fft(size);
  std::vector<float> padded(static_cast<size_t>(size));
  std::copy(impulse.begin(), impulse.end(), padded.begin());
  const auto first = fft(padded);
  const std::vector<std::complex<float>> response(first.begin(), first.end());
  std::vector<float> result(samples.size() + impulse.size() - 1);
  std::vector<std::complex<float>> product(response.size());
  for (int64_t begin = 0; begin < std::ssize(samples); begin += block) {
    const int64_t count = std::min(block, std::ssize(samples) - begin);
    std::fill(padded.begin(), padded.end(), 0.0F);
    std::copy_n(samples.begin() + begin, count, padded.begin());
    const auto spectrum = fft(padded);
    for (size_t k = 0; k < product.size(); ++k) product[k] = spectrum[k] * response[k];
    const auto part = fft.inverse(product);
    const int64_t added = std::min(size, std::ssize(result) - begin);
    for (int64_t i = 0; i < added; ++i) {
      result[static_cast<size_t>(begin + i)] += part[static_cast<size_t>(i)];
    }
  }
  return result;
}

std::vector<float> reverberated(std::span<const float> samples, std::span<const float> impulse) {
  if (!(square_sum(impulse) > 0)) {
    throw std::invalid_argument("reverberated: the impulse response is silent");
  }
  auto result = convolved(samples, impulse);
  const auto loudest = std::max_element(impulse.begin(), impulse.end(),
                                        [](float a, float b) { return std::abs(a) < std::abs(b); });
  result.erase(result.begin(),
               result.begin() + std::min<int64_t>(loudest - impulse.begin(), std::ssize(result)));
  result.resize(samples.size());
  const double before = square_sum(samples), now = square_sum(result);
  if (!(now > 0)) return result;
  const auto gain = static_cast<float>(std::sqrt(before / now));
  for (float& sample : result) sample *= gain;
  return result;
}

}  // namespace stretto::audio
