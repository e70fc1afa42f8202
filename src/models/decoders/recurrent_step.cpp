#include "models/decoders/recurrent_step.h"

#include <ATen/ATen.h>

#include <utility>

namespace stretto::models {

RecurrentStepDecoder::RecurrentStepDecoder(std::shared_ptr<RecurrentDecoder> decoder,
                                           const Encoded& memory, int64_t lanes_per_source)
    : lanes_(memory, lanes_per_source), recurrence_(std::move(decoder)) {
  recurrence_.enter(memory, memory.rows.offsets);
  recurrence_.take_lanes(at::tensor(lanes_.sources(), at::kLong).to(lanes_.device()));
}

at::Tensor RecurrentStepDecoder::step(const at::Tensor& ids) {
  return recurrence_.step(ids, lanes_.query_offsets());
}

void RecurrentStepDecoder::reorder(const std::vector<int64_t>& parents) {
  const Lanes::Change change = lanes_.reorder(parents);
  recurrence_.take_lanes(change.parents);
  if (change.rows.defined()) recurrence_.take_memory(change.rows, lanes_.key_offsets());
}

}  // namespace stretto::models
