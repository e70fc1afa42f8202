#pragma once

#include "kernels/recurrent/attentive_layer.h"

namespace stretto::kernels {

/// Slopes of the outputs; each may be undefined.
struct OutputSlopes {
  at::Tensor h, context, weights;
};

struct AttentiveWants {
  bool weights = true, initial = true;
};

/// Gradients of everything attentive() takes.
struct AttentiveSlopes {
  at::Tensor gates;
  AttentiveWeights weights;
  at::Tensor keys, values;
  AttentiveState initial;
};

/// Overwrites what the trace's cells keep.
AttentiveSlopes run_backward(const AttentiveLayer& layer, const AttentiveTrace& trace,
                             const OutputSlopes& slopes, const AttentiveWants& wants);

}  // namespace stretto::kernels
