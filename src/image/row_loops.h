#pragma once

#include <cstdint>
#include <vector>

/// Inner loops over bytes of pixels, with and without AVX2, of the same results.
namespace stretto::image {

inline constexpr int64_t kBlock = 16;  ///< bytes that are worked on at once
/// Weights of pixels are whole numbers in units of 2^-kFractionBits. Sums of products with bytes
/// stay below 2^31, since weights of Keys' cubic add up to 1.2 at most.
inline constexpr int kFractionBits = 32 - 8 - 2;

struct RowLoops {
  const char* name;
  /// out[i] = sum over t of weights[t] * pixels[t * stride + i], rounded and cut to bytes.
  /// @param weights  [count]
  /// @param out      [kBlock]
  void (*weigh)(const uint8_t* pixels, int64_t stride, const int32_t* weights, int64_t count,
                uint8_t* out);
  /// A square of kBlock rows and columns, each of its rows as a column.
  void (*transpose)(const uint8_t* from, int64_t from_stride, uint8_t* to, int64_t to_stride);
  /// Pixels of red, green and blue, one behind the other, as three rows.
  void (*split)(const uint8_t* rgb, int64_t count, uint8_t* red, uint8_t* green, uint8_t* blue);
  /// The last byte first.
  void (*reverse)(const uint8_t* from, int64_t count, uint8_t* to);
};

/// The fastest that this processor has.
const RowLoops& row_loops();
/// All that it has, the plain ones first.
std::vector<const RowLoops*> all_row_loops();

}  // namespace stretto::image
