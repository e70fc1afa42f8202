#pragma once

#include <cstdint>
#include <vector>

namespace stretto::audio {

/// The window function that multiplies the samples of a frame. With N samples, n = 0 … N - 1 and
/// a = 2 pi n / N (periodic) or 2 pi n / (N - 1) (symmetric):
enum class Window : uint8_t {
  kHann,         ///< 0.5 - 0.5 cos a
  kHamming,      ///< 0.54 - 0.46 cos a
  kBlackman,     ///< 0.42 - 0.5 cos a + 0.08 cos 2a
  kPovey,        ///< (0.5 - 0.5 cos a)^0.85, which is Kaldi's
  kRectangular,  ///< 1
};

/// Librosa and PyTorch have periodic windows, Kaldi and numpy symmetric ones.
enum class WindowSymmetry : uint8_t { kPeriodic, kSymmetric };

/// @param size  N, at least 1
/// @return [N]
std::vector<float> window_of(Window window, WindowSymmetry symmetry, int64_t size);

}  // namespace stretto::audio
