#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

struct kiss_fftr_state;

namespace stretto::audio {

/// The discrete Fourier transform of real numbers, by KISS FFT. For powers of two
/// audio/frame_loops.h is faster, of several frames at once.
///
///     X_k = sum_n x_n exp(-2 pi i k n / N),  k = 0 … N / 2
///
/// A plan has memory of its own, so that each thread needs one.
class RealFft {
 public:
  /// @param size  N, even. Throws std::invalid_argument for another one.
  explicit RealFft(int64_t size);
  ~RealFft();
  RealFft(const RealFft&) = delete;
  RealFft& operator=(const RealFft&) = delete;

  int64_t size() const { return size_; }
  int64_t num_bins() const { return size_ / 2 + 1; }
  /// @param in  [N]
  /// @return [N / 2 + 1], valid until the next call
  std::span<const std::complex<float>> operator()(std::span<const float> in);
  /// Backward: x_n = 1 / N sum_k X_k exp(2 pi i k n / N), of k = 0 … N - 1 with X_(N - k) the
  /// conjugate of X_k.
  /// @param spectrum  [N / 2 + 1]
  /// @return [N], valid until the next call
  std::span<const float> inverse(std::span<const std::complex<float>> spectrum);

 private:
  int64_t size_;
  kiss_fftr_state* plan_;
  kiss_fftr_state* inverse_plan_ = nullptr;  ///< made when it is first needed
  std::vector<std::complex<float>> out_;
  std::vector<float> samples_;
};

}  // namespace stretto::audio
