#pragma once

#include "kernels/recurrent/attentive_layer.h"

namespace stretto::kernels {

struct AttentiveResult {
  AttentiveTrace trace;
  RecurrentState last;
};

/// attentive() forward; decoding is one step of it.
/// @param keep  what backward needs
AttentiveResult run_forward(const AttentiveLayer& layer, const AttentivePacks& packs,
                            const at::Tensor& x, bool keep);

}  // namespace stretto::kernels
