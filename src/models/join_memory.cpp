#include "models/join_memory.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace stretto::models {
namespace {

/// The sequence of each row, int64 [rows]; without a look at the numbers, which lie on the device.
at::Tensor sequence_of_rows(const at::Tensor& offsets, int64_t rows) {
  return at::bucketize(at::arange(rows, offsets.options()), offsets.slice(0, 1).contiguous(),
                       /*out_int32=*/false, /*right=*/true);
}

/// For each row of the joined memory its place in first | second, int64 [N1 + N2].
at::Tensor joined_order(const Encoded& first, const Encoded& second) {
  const at::Tensor& begins = first.rows.offsets.values;
  const at::Tensor& begins2 = second.rows.offsets.values;
  const int64_t rows = first.keys.size(0), rows2 = second.keys.size(0);
  const auto places = at::TensorOptions(begins.device()).dtype(at::kLong);
  // Row n of sequence s of the first comes behind the second's rows of the sequences before s; of
  // the second, behind the first's rows of those and of s itself.
  const at::Tensor to =
      at::arange(rows, places) + begins2.index_select(0, sequence_of_rows(begins, rows));
  const at::Tensor to2 = at::arange(rows2, places) +
                         begins.slice(0, 1).index_select(0, sequence_of_rows(begins2, rows2));
  return at::empty({rows + rows2}, places)
      .scatter_(0, at::cat({to, to2}), at::arange(rows + rows2, places));
}

}  // namespace

Encoded join_memory(const Encoded& first, const Encoded& second, int64_t longest) {
  TORCH_CHECK(first.keys.size(1) == second.keys.size(1),
              "[model] encoders of one memory must give rows of one width, got ",
              first.keys.size(1), " and ", second.keys.size(1));
  const at::Tensor order = joined_order(first, second);
  const auto joined = [&](const at::Tensor& a, const at::Tensor& b) {
    return a.defined() && b.defined() ? at::cat({a, b}).index_select(0, order) : at::Tensor();
  };
  const auto &a = first.rows, &b = second.rows;
  Encoded memory{.rows = {.ids = joined(a.ids, b.ids),
                          .positions = joined(a.positions, b.positions),
                          .row_keys = joined(a.row_keys, b.row_keys),
                          .offsets = {.values = a.offsets.values + b.offsets.values,
                                      .max_length = std::min(
                                          longest, a.offsets.max_length + b.offsets.max_length)}},
                 .keys = joined(first.keys, second.keys),
                 .values = {},
                 .state = first.state};
  if (first.values.defined() || second.values.defined()) {
    memory.values = joined(first.attended(), second.attended());
  }
  return memory;
}

}  // namespace stretto::models
