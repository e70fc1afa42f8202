#include "kernels/recurrent/recurrent.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "kernels/cuda/table.h"
#include "kernels/dispatch.h"
#include "kernels/quantised/quantised.h"
#include "kernels/recurrent/checks.h"
#include "kernels/recurrent/fused.h"
#include "kernels/recurrent/reference.h"

namespace stretto::kernels {

int64_t gates_of(Cell cell) {
  return cell == Cell::kGru ? 3 : 4;
}

RecurrentOutput recurrent(const at::Tensor& x_gates, const RecurrentWeights& weights,
                          const RecurrentState& initial, const Recurrent& options) {
  checks::weights_of_cell(weights, options.cell, "recurrent");
  checks::rows_of_gates(x_gates, weights, options, "recurrent");
  checks::overwrites(x_gates, options, "recurrent");
  const int64_t batch = options.offsets.values.size(0) - 1, width = weights.hidden.size(1);
  checks::state(initial.h, batch, width, "recurrent: the initial h");
  checks::state(initial.c, batch, width, "recurrent: the initial c");
  const bool fused = checks::is_fused({x_gates, weights.hidden, weights.hidden_bias,
                                       weights.product_gain, weights.product_bias,
                                       weights.cell_gain, weights.cell_bias, initial.h, initial.c});
  if (stood_for(weights.hidden) && (!fused || at::GradMode::is_enabled())) {
    RecurrentWeights numbers = weights;
    numbers.hidden = dense_weight(weights.hidden).to(x_gates.options());
    return recurrent(x_gates, numbers, initial, options);
  }
  if (fused) return fused::recurrent(x_gates, weights, initial, options);
  const auto kernel = on_gpu(cuda::table().recurrent, x_gates, weights.hidden);
  return kernel != nullptr ? kernel(x_gates, weights, initial, options)
                           : reference::recurrent(x_gates, weights, initial, options);
}

}  // namespace stretto::kernels
