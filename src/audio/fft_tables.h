#pragma once

#include <cstdint>
#include <vector>

namespace stretto::audio {

/// Factors and places of the real Fourier transform of N = 2^n numbers by a complex one of
/// M = N / 2: x_2j + i x_2j+1 is transformed, and then untangled (audio/frame_loops.inc).
struct FftTables {
  struct Factor {
    float re = 1, im = 0;
  };

  int64_t size = 0;             ///< N
  std::vector<Factor> roots;    ///< exp(-2 pi i k / M), k = 0 … M - 1
  std::vector<Factor> halves;   ///< exp(-2 pi i k / N), k = 0 … M / 2
  std::vector<int32_t> places;  ///< [M]: where the transform in place leaves number k

  int64_t complex_size() const { return size / 2; }
  int64_t num_bins() const { return size / 2 + 1; }
};

/// Whether there are tables for this size: a power of two from 2 on.
bool has_fft_tables(int64_t size);
/// Throws std::invalid_argument for another size.
FftTables make_fft_tables(int64_t size);

}  // namespace stretto::audio
