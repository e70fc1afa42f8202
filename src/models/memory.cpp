#include "models/memory.h"

#include <ATen/ops/cat.h>

#include "nn/watch.h"

namespace stretto::models {

at::Tensor keys_and_values(const nn::CrossAttentionImpl& attention, const Encoded& memory) {
  const nn::LinearImpl& kv = *attention.kv;
  const nn::LoraDropoutScope of_memory(nn::LoraDropoutScope::of_rows(memory.rows.row_keys));
  if (!memory.values.defined()) return kv.forward(memory.keys, kernels::Storage::kRounded);
  const int64_t d = kv.weight.size(0) / 2;
  return nn::watch(kv, at::cat({kv.rows(memory.keys, 0, d), kv.rows(memory.values, d, d)}, 1));
}

}  // namespace stretto::models
