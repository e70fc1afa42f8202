#include "models/lanes.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <numeric>

#include "kernels/offsets.h"

namespace stretto::models {
std::vector<int64_t> lengths_of(const kernels::Offsets& offsets) {
  const at::Tensor bounds = offsets.values.cpu();
  const int32_t* at = bounds.const_data_ptr<int32_t>();
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i + 1 < bounds.numel(); ++i) lengths.push_back(at[i + 1] - at[i]);
  return lengths;
}

int64_t attending_layer(int64_t layer, size_t num_layers, const char* decoder) {
  const auto count = static_cast<int64_t>(num_layers);
  TORCH_CHECK(layer >= -1 && layer < count, "[", decoder, "] attention of layer ", layer,
              " of a decoder of ", count, " layers; set decode.alignment_layer");
  return layer < 0 ? count - 1 : layer;
}

std::vector<at::Tensor> attention_blocks(const at::Tensor& weights, const kernels::Offsets& queries,
                                         const kernels::Offsets& keys) {
  const auto rows = lengths_of(queries), columns = lengths_of(keys);
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < rows.size(); ++i) sizes.push_back(rows[i] * columns[i]);
  std::vector<at::Tensor> blocks = weights.split_with_sizes(sizes);
  for (size_t i = 0; i < rows.size(); ++i) blocks[i] = blocks[i].view({rows[i], columns[i]});
  return blocks;
}

Lanes::Lanes(const Encoded& memory, int64_t lanes_per_source)
    : device_(memory.keys.device()), lengths_(lengths_of(memory.rows.offsets)) {
  for (size_t i = 0; i < lengths_.size(); ++i) {
    sources_.insert(sources_.end(), static_cast<size_t>(lanes_per_source), static_cast<int64_t>(i));
  }
  set_offsets();
}

void Lanes::set_offsets() {
  std::vector<int64_t> lanes_of(lengths_.size(), 0);
  for (const int64_t source : sources_) ++lanes_of[static_cast<size_t>(source)];
  query_offsets_ = kernels::offsets_of(lanes_of, device_);
  key_offsets_ = kernels::offsets_of(lengths_, device_);
}

Lanes::Change Lanes::reorder(const std::vector<int64_t>& parents) {
  std::vector<int64_t> sources;
  for (const int64_t parent : parents) {
    TORCH_CHECK(parent >= 0 && parent < size(), "[lanes] reorder: lane ", parent, " of ", size());
    sources.push_back(sources_[static_cast<size_t>(parent)]);
  }
  TORCH_CHECK(std::is_sorted(sources.begin(), sources.end()),
              "[lanes] reorder: lanes must stay in the order of their sources");
  Change change{.lanes_left = parents.size() != sources_.size(),
                .parents = at::tensor(parents, at::kLong).to(device_),
                .rows = {}};
  if (!change.lanes_left && sources == sources_) return change;
  sources_ = std::move(sources);
  change.rows = drop_sources();
  set_offsets();
  return change;
}

at::Tensor Lanes::drop_sources() {
  std::vector<int64_t> kept = sources_;
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  if (kept.size() == lengths_.size()) return {};
  std::vector<int64_t> first_row(lengths_.size() + 1, 0);
  std::partial_sum(lengths_.begin(), lengths_.end(), first_row.begin() + 1);
  std::vector<int64_t> rows, lengths, renamed(lengths_.size(), -1);
  for (const int64_t source : kept) {
    const auto at = static_cast<size_t>(source);
    renamed[at] = static_cast<int64_t>(lengths.size());
    lengths.push_back(lengths_[at]);
    for (int64_t row = first_row[at]; row < first_row[at + 1]; ++row) rows.push_back(row);
  }
  lengths_ = std::move(lengths);
  for (int64_t& source : sources_) source = renamed[static_cast<size_t>(source)];
  return at::tensor(rows, at::kLong).to(device_);
}

}  // namespace stretto::models
