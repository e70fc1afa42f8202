#pragma once

#include "kernels/compute.h"
#include "kernels/convolution/convolution.h"

/// Convolutions in time with fewer products than taps times outputs: two outputs of r taps are
/// r + 1 products of sums of rows and sums of weights instead of 2 r (Winograd 1980, "Arithmetic
/// Complexity of Computations"; Lavin & Gray 2015, arXiv:1509.09308). Longer kernels are cut into
/// chunks of taps, whose products are summed as one product of greater depth.
///
///     taps        1  2  3  4  5  6  7  8  9
///     products    2  3  4  5  7  8  9 10 12      of  2 * taps
///
/// Two outputs share a tile: those at t and t + dilation, from the beginning of each sequence on,
/// so that no result depends on how sequences are cut into batches. Sums are rounded before they
/// are multiplied; errors are on average some 1.3 times those of plain products, with 4 taps in a
/// chunk twice.
namespace stretto::kernels {

/// Whether a convolution of C to O channels is computed this way: fp32 where our own product is
/// taken, three taps and more, stride 1, and widths that are worth it. Never a question of the
/// number of rows.
bool is_filtered(const TimeWindow& window, int64_t inputs, int64_t outputs, Compute compute);

/// The tiles of rows that a convolution with stride 1 makes.
struct Tiles {
  at::Tensor inputs;   ///< int32 [tiles, K + 1]: the rows that a tile's two outputs see, or -1
  at::Tensor outputs;  ///< int32 [tiles, 2]: its two outputs, or -1
};

/// The tiles of a window, and of its backward pass: rows of x from rows of dy, taps in reverse.
Tiles forward_tiles(const TimeWindow& window);
Tiles backward_tiles(const TimeWindow& window);

enum class TapOrder { kForward, kReverse };

/// x [N, W], weight [K, W, P] (one of its last two dimensions dense), bias [P] or undefined
/// -> [N, P].
at::Tensor filter_rows(const at::Tensor& x, const Tiles& tiles, const at::Tensor& weight,
                       TapOrder order, const at::Tensor& bias);

/// The gradient of the weight as time_convolution has it, [O, K * C], from the tiles of forward.
at::Tensor filter_slopes(const at::Tensor& x, const at::Tensor& dy, const Tiles& tiles);

}  // namespace stretto::kernels
