#pragma once

#include <cstdint>

namespace stretto::kernels {

/// What stands behind a norm of planes: nothing, relu, or GELU by erf.
enum class PlaneEnd : uint8_t { kNone, kRelu, kGelu };

}  // namespace stretto::kernels

namespace stretto::kernels::cpu {

/// The norm of planes in channels-last memory, which are rows of `channels` numbers:
///
///     z = x scale + shift (+ residual)        y = end(z)
struct PlaneNorm {
  const float* x;              ///< [rows, channels]
  const float *scale, *shift;  ///< [channels]
  const float* residual;       ///< [rows, channels]; null: nothing is added
  int64_t channels;
  PlaneEnd end;
};

/// Its backward, in two passes. The first one adds to the sums of slopes of z; the second one makes
///
///     dx = gain dz + along (x - mean) + offset
struct PlaneSlopes {
  PlaneNorm norm;
  const float* y;     ///< what forward gave: read by kRelu with a residual
  const float* dy;    ///< [rows, channels]
  const float* mean;  ///< [channels]
  /// [rows, channels]: where the first pass leaves the slopes of z, and the second one finds them;
  /// null: both work them out, of kNone, and of kRelu without a residual. May be dx.
  float* dz;
  const float *gain, *along, *offset;  ///< [channels], of the second pass
  float* dx;                           ///< [rows, channels], of the second pass
};

/// Loops on rows [begin, end). No sum goes beyond them.
struct PlaneLoops {
  /// The mean of each channel over the rows, and the sum of squared distances to it; both
  /// [channels], overwritten. There is a row.
  void (*moments)(const float* x, int64_t begin, int64_t end, int64_t channels, float* mean,
                  float* squares);
  void (*norm)(const PlaneNorm& norm, float* y, int64_t begin, int64_t end);
  /// sums [2, channels], overwritten: of dz, and of dz (x - mean).
  void (*slope_sums)(const PlaneSlopes& slopes, float* sums, int64_t begin, int64_t end);
  void (*slopes)(const PlaneSlopes& slopes, int64_t begin, int64_t end);
};

}  // namespace stretto::kernels::cpu
