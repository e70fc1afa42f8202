#include "models/packed.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/random.h"

namespace stretto::models {

namespace {

/// Keys of dropout masks, one for each token.
std::vector<int64_t> row_keys_of(const data::PackedTokens& tokens,
                                 const std::vector<int64_t>& sample_ids) {
  std::vector<int64_t> keys(tokens.values.size());
  for (int64_t i = 0; i < tokens.num_sequences(); ++i) {
    for (int64_t t = 0; t < tokens.length(i); ++t) {
      keys[tokens.offsets[i] + t] = static_cast<int64_t>(
          mix64(static_cast<uint64_t>(sample_ids[i]), static_cast<uint64_t>(t)));
    }
  }
  return keys;
}

/// Without keys.
nn::PackedRows without_keys(const data::PackedTokens& tokens, c10::Device device) {
  std::vector<int64_t> positions(tokens.values.size());
  int64_t longest = 0;
  for (int64_t i = 0; i < tokens.num_sequences(); ++i) {
    longest = std::max(longest, tokens.length(i));
    for (int64_t t = 0; t < tokens.length(i); ++t) positions[tokens.offsets[i] + t] = t;
  }
  nn::PackedRows rows;
  rows.ids = at::tensor(tokens.values, at::kLong).to(device);
  rows.positions = at::tensor(positions, at::kLong).to(device);
  rows.offsets = {.values = at::tensor(tokens.offsets, at::kInt).to(device), .max_length = longest};
  return rows;
}

}  // namespace

nn::PackedRows pack(const data::PackedTokens& tokens, const std::vector<int64_t>* sample_ids,
                    c10::Device device) {
  nn::PackedRows rows = without_keys(tokens, device);
  if (sample_ids != nullptr) {
    rows.row_keys = at::tensor(row_keys_of(tokens, *sample_ids), at::kLong).to(device);
  }
  return rows;
}

nn::PackedRows pack_text(const data::PackedTokens& tokens, const data::PackedTokens* segments,
                         const std::vector<int64_t>* sample_ids, c10::Device device) {
  nn::PackedRows rows = pack(tokens, sample_ids, device);
  if (segments == nullptr) return rows;
  TORCH_CHECK(segments->offsets == tokens.offsets,
              "[model] segments must be as long as the tokens that they are of, sequence by "
              "sequence: ",
              segments->values.size(), " and ", tokens.values.size(), " rows");
  rows.segments = at::tensor(segments->values, at::kLong).to(device);
  return rows;
}

nn::PackedRows pack_twice(const data::PackedTokens& tokens, const std::vector<int64_t>& sample_ids,
                          c10::Device device) {
  data::PackedTokens both = tokens;
  for (int64_t i = 0; i < tokens.num_sequences(); ++i) both.append(tokens.sequence(i));
  nn::PackedRows rows = without_keys(both, device);
  std::vector<int64_t> keys = row_keys_of(tokens, sample_ids);
  const size_t once = keys.size();
  for (size_t n = 0; n < once; ++n) {
    keys.push_back(static_cast<int64_t>(mix64(static_cast<uint64_t>(keys[n]), /*pass*/ 1)));
  }
  rows.row_keys = at::tensor(keys, at::kLong).to(device);
  return rows;
}

nn::PackedRows drop_words(nn::PackedRows rows, const nn::DropoutSource& source, double p,
                          uint64_t site) {
  const kernels::Dropout words = source.at(p, site);
  if (!words.active()) return rows;
  const at::Tensor ones = at::ones({rows.ids.size(0), 1}, rows.ids.options().dtype(at::kFloat));
  rows.dropped_words = kernels::dropout(ones, words).eq(0).squeeze(1);
  return rows;
}

at::Tensor first_places(const kernels::Offsets& offsets) {
  return offsets.values.narrow(0, 0, offsets.values.size(0) - 1).to(at::kLong);
}

at::Tensor first_rows(const at::Tensor& rows, const kernels::Offsets& offsets) {
  return rows.index_select(0, first_places(offsets));
}

at::Tensor mean_rows(const at::Tensor& rows, const kernels::Offsets& offsets) {
  const at::Tensor lengths = at::diff(offsets.values.to(at::kLong));
  return at::segment_reduce(rows, "mean", lengths, {}, {}, 0, false, 0);
}

data::PackedTokens shift_right(const data::PackedTokens& targets, int64_t bos) {
  TORCH_CHECK(bos >= 0,
              "[model] the target's beginning-of-sentence is missing: ModelSetup::tgt_specials");
  data::PackedTokens input = targets;
  for (int64_t i = 0; i < targets.num_sequences(); ++i) {
    const auto begin = input.values.begin() + targets.offsets[i];
    const auto end = input.values.begin() + targets.offsets[i + 1];
    std::copy_backward(begin, end - 1, end);
    *begin = bos;
  }
  return input;
}

}  // namespace stretto::models
