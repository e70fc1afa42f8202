#include "models/packed.h"

#include <ATen/ops/tensor.h>

#include <algorithm>

#include "base/random.h"
#include "text/tokenizer.h"

namespace stretto::models {

nn::PackedRows pack(const data::PackedTokens& tokens, const std::vector<int64_t>* sample_ids,
                    c10::Device device) {
  std::vector<int64_t> positions(tokens.values.size());
  std::vector<int64_t> keys(sample_ids != nullptr ? tokens.values.size() : 0);
  int64_t longest = 0;
  for (int64_t i = 0; i < tokens.num_sequences(); ++i) {
    const int64_t start = tokens.offsets[i];
    longest = std::max(longest, tokens.length(i));
    for (int64_t t = 0; t < tokens.length(i); ++t) {
      positions[start + t] = t;
      if (sample_ids == nullptr) continue;
      keys[start + t] = static_cast<int64_t>(
          mix64(static_cast<uint64_t>((*sample_ids)[i]), static_cast<uint64_t>(t)));
    }
  }
  nn::PackedRows rows;
  rows.ids = at::tensor(tokens.values, at::kLong).to(device);
  rows.positions = at::tensor(positions, at::kLong).to(device);
  if (sample_ids != nullptr) rows.row_keys = at::tensor(keys, at::kLong).to(device);
  rows.offsets = {.values = at::tensor(tokens.offsets, at::kInt).to(device), .max_length = longest};
  return rows;
}

data::PackedTokens shift_right(const data::PackedTokens& targets) {
  data::PackedTokens input = targets;
  for (int64_t i = 0; i < targets.num_sequences(); ++i) {
    const auto begin = input.values.begin() + targets.offsets[i];
    const auto end = input.values.begin() + targets.offsets[i + 1];
    std::copy_backward(begin, end - 1, end);
    *begin = text::kBos;
  }
  return input;
}

}  // namespace stretto::models
