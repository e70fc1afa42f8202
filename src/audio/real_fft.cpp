#include "audio/real_fft.h"

#include <kissfft/kiss_fftr.h>

#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace stretto::audio {

static_assert(std::is_same_v<kiss_fft_scalar, float> && sizeof(kiss_fft_cpx) == 2 * sizeof(float));

RealFft::RealFft(int64_t size) : size_(size) {
  if (size < 2 || size % 2 != 0 || size > std::numeric_limits<int>::max()) {
    throw std::invalid_argument("real fft: the size is even and positive, got " +
                                std::to_string(size));
  }
  out_.resize(static_cast<size_t>(num_bins()));
  plan_ = ::kiss_fftr_alloc(static_cast<int>(size), /*inverse_fft=*/0, nullptr, nullptr);
  if (plan_ == nullptr) throw std::bad_alloc();
}

RealFft::~RealFft() {
  ::kiss_fftr_free(plan_);
  if (inverse_plan_ != nullptr) ::kiss_fftr_free(inverse_plan_);
}

std::span<const std::complex<float>> RealFft::operator()(std::span<const float> in) {
  if (static_cast<int64_t>(in.size()) != size_) {
    throw std::invalid_argument("real fft: " + std::to_string(in.size()) +
                                " numbers, and a plan for " + std::to_string(size_));
  }
  ::kiss_fftr(plan_, in.data(), reinterpret_cast<kiss_fft_cpx*>(out_.data()));
  return out_;
}

std::span<const float> RealFft::inverse(std::span<const std::complex<float>> spectrum) {
  if (static_cast<int64_t>(spectrum.size()) != num_bins()) {
    throw std::invalid_argument("real fft: " + std::to_string(spectrum.size()) +
                                " bins, and a plan for " + std::to_string(num_bins()));
  }
  if (inverse_plan_ == nullptr) {
    inverse_plan_ = ::kiss_fftr_alloc(static_cast<int>(size_), /*inverse_fft=*/1, nullptr, nullptr);
    if (inverse_plan_ == nullptr) throw std::bad_alloc();
  }
  samples_.resize(static_cast<size_t>(size_));
  ::kiss_fftri(inverse_plan_, reinterpret_cast<const kiss_fft_cpx*>(spectrum.data()),
               samples_.data());
  const float share = 1 / static_cast<float>(size_);
  for (float& sample : samples_) sample *= share;
  return samples_;
}

}  // namespace stretto::audio
