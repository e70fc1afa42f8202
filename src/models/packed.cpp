#include "models/packed.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "base/random.h"
#include "kernels/convolution/convolution.h"

namespace stretto::models {

namespace {

/// Keys of dropout masks, one for each row of a column.
template <class T>
std::vector<int64_t> row_keys_of(const data::Ragged<T>& rows,
                                 const std::vector<int64_t>& sample_ids) {
  std::vector<int64_t> keys(static_cast<size_t>(rows.num_rows()));
  for (int64_t i = 0; i < rows.num_sequences(); ++i) {
    for (int64_t t = 0; t < rows.length(i); ++t) {
      keys[rows.offsets[i] + t] = static_cast<int64_t>(
          mix64(static_cast<uint64_t>(sample_ids[i]), static_cast<uint64_t>(t)));
    }
  }
  return keys;
}

/// Without keys, ids and values.
template <class T>
nn::PackedRows places_of(const data::Ragged<T>& column, c10::Device device) {
  std::vector<int64_t> positions(static_cast<size_t>(column.num_rows()));
  for (int64_t i = 0; i < column.num_sequences(); ++i) {
    for (int64_t t = 0; t < column.length(i); ++t) positions[column.offsets[i] + t] = t;
  }
  nn::PackedRows rows;
  rows.positions = at::tensor(positions, at::kLong).to(device);
  rows.offsets = {.values = at::tensor(column.offsets, at::kInt).to(device),
                  .max_length = column.max_length()};
  return rows;
}

/// Without keys.
nn::PackedRows without_keys(const data::PackedTokens& tokens, c10::Device device) {
  nn::PackedRows rows = places_of(tokens, device);
  rows.ids = at::tensor(tokens.values, at::kLong).to(device);
  return rows;
}

template <class T>
nn::PackedRows pack_values(const data::Ragged<T>& column, at::ScalarType type,
                           const std::vector<int64_t>* sample_ids, c10::Device device) {
  nn::PackedRows rows = places_of(column, device);
  rows.values = at::empty({column.num_rows(), column.width}, type);
  std::copy(column.values.begin(), column.values.end(), rows.values.mutable_data_ptr<T>());
  rows.values = rows.values.to(device);
  if (sample_ids != nullptr) {
    rows.row_keys = at::tensor(row_keys_of(column, *sample_ids), at::kLong).to(device);
  }
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

nn::PackedRows pack(const data::Ragged<float>& rows, const std::vector<int64_t>* sample_ids,
                    c10::Device device) {
  return pack_values(rows, at::kFloat, sample_ids, device);
}

nn::PackedRows pack(const data::Ragged<uint8_t>& rows, const std::vector<int64_t>* sample_ids,
                    c10::Device device) {
  return pack_values(rows, at::kByte, sample_ids, device);
}

nn::PackedRows behind_stride(const nn::PackedRows& rows, int64_t stride, const at::Tensor& values) {
  nn::PackedRows behind;
  behind.values = values;
  behind.offsets = kernels::output_offsets({.offsets = rows.offsets, .stride = stride});
  const int64_t count = values.size(0);
  TORCH_CHECK(!values.is_cpu() || behind.offsets.values[-1].item<int64_t>() == count,
              "[model] behind a stride of ", stride, " there are ",
              behind.offsets.values[-1].item<int64_t>(), " rows, got ", count);
  const at::Tensor lengths = at::diff(behind.offsets.values.to(at::kLong));
  // The stated size spares a wait for a GPU.
  const at::Tensor sequence = at::repeat_interleave(lengths, std::optional<int64_t>(count));
  behind.positions = at::arange(count, rows.positions.options()) -
                     first_places(behind.offsets).index_select(0, sequence);
  if (!rows.row_keys.defined()) return behind;
  const at::Tensor from =
      first_places(rows.offsets).index_select(0, sequence) + behind.positions * stride;
  behind.row_keys = rows.row_keys.index_select(0, from);
  return behind;
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
  const at::Tensor ones =
      at::ones({rows.num_rows(), 1}, rows.positions.options().dtype(at::kFloat));
  rows.dropped_words = kernels::dropout(ones, words).eq(0).squeeze(1);
  return rows;
}

at::Tensor first_places(const kernels::Offsets& offsets) {
  return offsets.values.narrow(0, 0, offsets.values.size(0) - 1).to(at::kLong);
}

at::Tensor first_rows(const at::Tensor& rows, const kernels::Offsets& offsets) {
  return rows.index_select(0, first_places(offsets));
}

at::Tensor last_places(const kernels::Offsets& offsets) {
  return offsets.values.narrow(0, 1, offsets.values.size(0) - 1).to(at::kLong) - 1;
}

at::Tensor last_rows(const at::Tensor& rows, const kernels::Offsets& offsets) {
  return rows.index_select(0, last_places(offsets));
}

at::Tensor max_rows(const at::Tensor& rows, const kernels::Offsets& offsets) {
  const at::Tensor lengths = at::diff(offsets.values.to(at::kLong));
  return at::segment_reduce(rows, "max", lengths);
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
