#pragma once

#include "kernels/kernels.h"
#include "nn/rotary_options.h"

namespace stretto::nn {

/// The angles of rotary positions for heads of `width` columns, an even number. Pair j < W / 2
/// turns by f_j a token:
///
///     none      f_j = base^(-2 j / W)
///     linear    f_j / factor                         (Chen et al. 2023, arXiv:2306.15595)
///     llama3    f_j / factor where the pair turns less than low_frequency_factor times in
///               original_positions; f_j where it turns more than high_frequency_factor times; a
///               mean of both between, linear in the number of turns (Llama 3.1)
///     yarn      f_j / factor from pair c(slow_rotations) on, f_j up to pair c(fast_rotations), a
///               mean of both between, linear in j; c(r) is the pair that turns r times in
///               original_positions, rounded outwards. Turned rows are multiplied by
///               attention_factor, or 0.1 ln(factor) + 1 (Peng et al. 2023, arXiv:2309.00071)
///
/// These are the numbers of `transformers`. Without scaling and with the paper's base, frequencies
/// are undefined: the operator has them.
kernels::RotaryAngles rotary_angles(const RotaryOptions& options, int64_t width);

}  // namespace stretto::nn
