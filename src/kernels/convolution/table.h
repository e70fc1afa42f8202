#pragma once

#include <cstdint>

namespace stretto::kernels::cpu {

struct Drop;
struct Rows;

/// A convolution in time without products between channels: number c of output row n is the sum,
/// in the order of taps t, of weight(n, t, c) times number c of row lines[n, t] of x; an entry
/// below 0 has no row and adds nothing. x and the output are [rows, width].
struct ChannelItem {
  const float* x;
  const int32_t* lines;  ///< [rows, taps]
  int64_t taps, width;
  const float* weights;
};

/// weight(n, t, c) = weights[row * weight_step + c / (width / heads) * taps + t], where row is n,
/// or lines[n, t] with `by_line`: backward to x sees the weights of the rows that come back.
struct HeadItem {
  ChannelItem channels;
  int64_t heads, weight_step;  ///< weight_step 0: all rows share the weights
  bool by_line;
};

/// out = bias + the sum over f of factors[f] times matrix f, [rows, columns] all.
struct MixItem {
  const float* matrices;
  int64_t count, distance, row;  ///< from one matrix to the next, from one row to the next
  const float* factors;
  int64_t rows, columns;
  const float* bias;  ///< null: none
  float* out;
  int64_t out_row;
  const int32_t* lines;  ///< null: as they lie; row i goes to line lines[i * step], below 0 nowhere
  int64_t step;
};

/// A convolution over rows and columns. Output n of row t is the sum over taps i of time, in their
/// order, of `width` numbers of row lines[t, i] of x from n * x_step on, times their rows of B; an
/// entry below 0 has no row and adds nothing. So windows may overlap, and lie where x has them.
struct WindowItem {
  const float* x;
  int64_t x_row, x_step;
  const int32_t* lines;  ///< [rows, taps]
  int64_t taps, width;
  const float* b;            ///< [taps * width, columns], packed as of one depth block
  const float* bias;         ///< [columns]; null: none
  int64_t outputs, columns;  ///< of a row, of an output
  float* y;
  int64_t y_row, y_step;
  const int32_t* targets;  ///< row t goes to row targets[t] of y; null: to row t
};

/// The slopes of the rows of B of one tap: [width, columns], number (k, j) the sum over rows t and
/// outputs n, in their order, of number k of the window that n sees times dy(t, n)[j].
struct WindowSlopeItem {
  const float* x;
  int64_t x_row, x_step;
  const int32_t* lines;  ///< of the tap: row t's is lines[t * taps]
  int64_t taps, width;
  const float* dy;
  int64_t dy_row, dy_step;
  int64_t rows, outputs, columns;  ///< columns: whole panels
  float* slopes;
  int64_t slope_row;
};

/// Loops of kernels/convolution over rows or columns [begin, end); convolution.h has the formulas.
struct ConvolutionLoops {
  /// out = mask * (a * sigmoid(b)), (a, b) the halves of x [rows, 2 width] + bias [2 width] (null:
  /// none); backward writes both halves.
  void (*glu)(const float* x, const float* bias, float* out, const Rows& rows, const Drop& drop);
  void (*glu_backward)(const float* dy, const float* x, const float* bias, float* slopes,
                       const Rows& rows, const Drop& drop);
  /// weights [taps, width], bias [width] or null; output rows [begin, end).
  void (*depthwise)(const ChannelItem& item, const float* bias, float* out, int64_t begin,
                    int64_t end);
  /// slopes[t, c] = sum over the `rows` output rows n of dy[n, c] x[lines[n, t], c], columns
  /// [begin, end), whose cut is part of the rounding; item.weights is not read.
  void (*depthwise_slopes)(const ChannelItem& item, const float* dy, int64_t rows, float* slopes,
                           int64_t begin, int64_t end);
  void (*heads)(const HeadItem& item, float* out, int64_t begin, int64_t end);
  /// slopes[n, head, t] = dot of head's columns of dy[n] and x[lines[n, t]].
  void (*head_slopes)(const HeadItem& item, const float* dy, float* slopes, int64_t begin,
                      int64_t end);
  void (*mix)(const MixItem& item);
  /// Rows [begin, end) of the output.
  void (*windows)(const WindowItem& item, int64_t begin, int64_t end);
  void (*window_slopes)(const WindowSlopeItem& item);
  /// out[r] = gain[r] v[r] / |v[r]|; norms[r] = |v[r]|.
  void (*weight_norm)(const float* v, const float* gain, float* out, float* norms,
                      const Rows& rows);
  /// dv and dgain of the same.
  void (*weight_norm_backward)(const float* dy, const float* v, const float* gain,
                               const float* norms, float* dv, float* dgain, const Rows& rows);
};

}  // namespace stretto::kernels::cpu
