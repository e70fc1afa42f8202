#include "kernels/recurrent/attentive.h"

#include <ATen/ATen.h>

#include "kernels/cuda/table.h"
#include "kernels/dispatch.h"
#include "kernels/recurrent/attention_pass.h"
#include "kernels/recurrent/checks.h"
#include "kernels/recurrent/fused.h"
#include "kernels/recurrent/reference.h"

namespace stretto::kernels {

AttentiveOutput attentive(const at::Tensor& x_gates, const AttentiveWeights& weights,
                          const Memory& memory, const AttentiveState& initial,
                          const Attentive& options) {
  constexpr const char* kName = "attentive";
  const RecurrentWeights& cell = weights.recurrent;
  checks::weights_of_cell(cell, options.recurrent.cell, kName);
  checks::weights_of_attention(weights, options.score, kName);
  checks::rows_of_gates(x_gates, cell, options.recurrent, kName);
  checks::overwrites(x_gates, options.recurrent, kName);
  TORCH_CHECK(!options.recurrent.reverse, "[kernels] attentive: a decoder runs forward only");
  const int64_t batch = options.recurrent.offsets.values.size(0) - 1;
  checks::memory(memory, weights, batch, kName);
  checks::state(initial.h, batch, cell.hidden.size(1), "attentive: the initial h");
  checks::state(initial.c, batch, cell.hidden.size(1), "attentive: the initial c");
  checks::state(initial.context, batch, memory.values.size(1), "attentive: the initial context");
  const bool fused = checks::is_fused({x_gates, cell.hidden, cell.hidden_bias, cell.product_gain,
                                       cell.product_bias, cell.cell_gain, cell.cell_bias,
                                       weights.context, weights.query, weights.query_bias,
                                       weights.score, weights.gain, weights.location, memory.keys,
                                       memory.values, initial.h, initial.c, initial.context});
  if (fused)
    return fused::attentive(x_gates, plain_score(weights, options.score), memory, initial, options);
  // Kernels of a GPU know neither what earlier weights add to the keys nor slopes of weights.
  if (weights.location.defined() || options.weights_learn)
    return reference::attentive(x_gates, weights, memory, initial, options);
  const auto kernel = on_gpu(cuda::table().attentive, x_gates, cell.hidden);
  return kernel != nullptr ? kernel(x_gates, weights, memory, initial, options)
                           : reference::attentive(x_gates, weights, memory, initial, options);
}

}  // namespace stretto::kernels
