#include "models/memory.h"

#include <ATen/ops/cat.h>

#include "kernels/kernels.h"
#include "nn/watch.h"

namespace stretto::models {

at::Tensor keys_and_values(const nn::CrossAttentionImpl& attention, const Encoded& memory) {
  const nn::LinearImpl& kv = *attention.kv;
  if (!memory.values.defined()) return kv.forward(memory.keys);
  const int64_t d = kv.weight.size(0) / 2;
  const auto half = [&](const at::Tensor& rows, int64_t from) {
    return kernels::linear(rows, kv.weight.narrow(0, from, d), kv.bias.narrow(0, from, d));
  };
  return nn::watch(kv, at::cat({half(memory.keys, 0), half(memory.values, d)}, 1));
}

}  // namespace stretto::models
