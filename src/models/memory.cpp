#include "models/memory.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "nn/watch.h"

namespace stretto::models {

Encoded no_memory(int64_t num_sources, c10::Device device) {
  const at::Tensor bounds = at::zeros({num_sources + 1}, at::dtype(at::kInt).device(device));
  return {.rows = {.offsets = {.values = bounds}},
          .keys = at::empty({0, 0}, at::dtype(at::kFloat).device(device)),
          .values = {},
          .state = {}};
}

int64_t required_memory(const PartSetup& setup, const char* decoder) {
  TORCH_CHECK(setup.memory_width, "[", decoder,
              "] this decoder attends to a memory, and PartSetup::memory_width says that there is "
              "none; a `transformer` can do without");
  return *setup.memory_width;
}

at::Tensor keys_and_values(const nn::CrossAttentionImpl& attention, const Encoded& memory) {
  const nn::LinearImpl& kv = *attention.kv;
  const nn::LoraDropoutScope of_memory(nn::LoraDropoutScope::of_rows(memory.rows.row_keys));
  if (!memory.values.defined()) return kv.forward(memory.keys, kernels::Storage::kRounded);
  const int64_t d = kv.weight.size(0) / 2;
  return nn::watch(kv, at::cat({kv.rows(memory.keys, 0, d), kv.rows(memory.values, d, d)}, 1));
}

}  // namespace stretto::models
