#include "models/split_sources.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "data/pairs/two_sources.h"

namespace stretto::models {
namespace {

/// Which rows of the column are one source's.
struct SourceRows {
  std::vector<int64_t> rows, positions;
  std::vector<int32_t> offsets{0};
  int64_t longest = 0;

  void take(int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      rows.push_back(row);
      positions.push_back(row - begin);
    }
    offsets.push_back(static_cast<int32_t>(rows.size()));
    longest = std::max(longest, end - begin);
  }
};

nn::PackedRows selected(const nn::PackedRows& all, const SourceRows& source) {
  const at::Device device = all.ids.device();
  const at::Tensor index = at::tensor(source.rows, at::kLong).to(device);
  const auto of = [&](const at::Tensor& values) {
    return values.defined() ? values.index_select(0, index) : values;
  };
  return {.ids = of(all.ids),
          .positions = at::tensor(source.positions, at::kLong).to(device),
          .row_keys = of(all.row_keys),
          .offsets = {.values = at::tensor(source.offsets, at::kInt).to(device),
                      .max_length = source.longest},
          .dropped_words = of(all.dropped_words)};
}

}  // namespace

SplitSources split_sources(const nn::PackedRows& rows, const data::PackedTokens& tokens,
                           int64_t eos) {
  SourceRows first, second;
  const int64_t once = tokens.num_rows();
  for (int64_t pass = 0; pass < rows.ids.size(0); pass += once) {
    for (int64_t i = 0; i < tokens.num_sequences(); ++i) {
      const auto ids = tokens.sequence(i);
      const auto length = static_cast<int64_t>(ids.size());
      const auto boundary = static_cast<int64_t>(data::end_of_first_source(ids, eos)) + 1;
      TORCH_CHECK(boundary < length, "[model] a model of two encoders reads two sources, sequence ",
                  i, " of ", length, " tokens has one");
      const int64_t begin = pass + tokens.offsets[static_cast<size_t>(i)];
      first.take(begin, begin + boundary);
      second.take(begin + boundary, begin + length);
    }
  }
  return {.first = selected(rows, first), .second = selected(rows, second)};
}

}  // namespace stretto::models
