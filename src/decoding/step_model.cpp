#include "decoding/step_model.h"

#include <ATen/ops/tensor.h>

#include <algorithm>

namespace stretto::decoding {

void PackedPrompts::append(std::span<const int64_t> prompt) {
  ids.insert(ids.end(), prompt.begin(), prompt.end());
  lengths.push_back(static_cast<int64_t>(prompt.size()));
}

int64_t PackedPrompts::longest() const {
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

bool PackedPrompts::are_equally_long() const {
  return std::all_of(lengths.begin(), lengths.end(),
                     [&](int64_t length) { return length == lengths.front(); });
}

at::Tensor rectangle_of(const PackedPrompts& prompts) {
  TORCH_CHECK(prompts.size() > 0 && prompts.are_equally_long(),
              "[step_model] prefill_packed: this model takes prompts of one length together");
  return at::tensor(prompts.ids, at::kLong).view({prompts.size(), prompts.longest()});
}

at::Tensor StepModel::prefill_packed(const PackedPrompts& prompts, int64_t lanes_per_source) {
  return prefill(rectangle_of(prompts), lanes_per_source);
}

}  // namespace stretto::decoding
