#pragma once

#include <string_view>

#include "store/quantised.h"

namespace stretto::compress {

/// Makes zero the weights that a mask names (compress::PackedMasks): calibrated rounding adds to
/// later columns what rounding earlier ones changed, to pruned ones too. No weight gets more bits.
/// TORCH_CHECK: a bit for each weight.
void hold_zeros(store::QuantisedTensor& packed, std::string_view bits);

}  // namespace stretto::compress
