#pragma once

#include "kernels/ctc/ctc.h"

/// The operator of ctc.h in plain ATen, for any dtype and device; see kernels/reference.h.
namespace stretto::kernels::reference {

/// By way of a rectangle [longest sequence, B, C].
CtcLosses ctc_loss(const at::Tensor& scores, const CtcTargets& targets);

}  // namespace stretto::kernels::reference
