#include "models/model_cost.h"

#include "models/registry.h"

namespace stretto::models {

ModelCost cost_of(const Seq2SeqModel& model, const Lengths& lengths) {
  return {.parameters = num_parameters(model),
          .training_flops = 3 * model.operations(lengths.src, lengths.tgt) / lengths.tgt};
}

}  // namespace stretto::models
