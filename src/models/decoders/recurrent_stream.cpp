#include "models/decoders/recurrent_stream.h"

#include <ATen/ATen.h>

#include <utility>

#include "kernels/offsets.h"
#include "models/lanes.h"

namespace stretto::models {

RecurrentStreamDecoder::RecurrentStreamDecoder(std::shared_ptr<RecurrentDecoder> decoder)
    : recurrence_(std::move(decoder)) {}

void RecurrentStreamDecoder::enter(const Encoded& memory) {
  const torch::NoGradGuard no_grad;
  const std::vector<int64_t> entering = lengths_of(memory.rows.offsets);
  const c10::Device device = memory.keys.device();
  std::vector<int64_t> lengths = lengths_;
  lengths.insert(lengths.end(), entering.begin(), entering.end());
  recurrence_.enter(memory, kernels::offsets_of(lengths, device));
  lengths_ = std::move(lengths);
  lanes_.insert(lanes_.end(), entering.size(), 1);
  query_offsets_ = kernels::offsets_of(lanes_, device);
}

at::Tensor RecurrentStreamDecoder::step(const at::Tensor& ids) {
  const torch::NoGradGuard no_grad;
  TORCH_CHECK(ids.dim() == 1 && ids.size(0) == recurrence_.size(), "[lstm] a step of ",
              recurrence_.size(), " lanes, got ids ", ids.sizes());
  return recurrence_.step(ids, query_offsets_);
}

void RecurrentStreamDecoder::reorder(const std::vector<int64_t>& parents) {
  const torch::NoGradGuard no_grad;
  std::vector<size_t> sources;  // of each lane
  for (size_t i = 0; i < lanes_.size(); ++i) {
    sources.insert(sources.end(), static_cast<size_t>(lanes_[i]), i);
  }
  std::vector<int64_t> lanes(lanes_.size(), 0);
  size_t last = 0;
  for (const int64_t parent : parents) {
    TORCH_CHECK(parent >= 0 && parent < recurrence_.size(), "[lstm] reorder: lane ", parent, " of ",
                recurrence_.size());
    const size_t source = sources[static_cast<size_t>(parent)];
    TORCH_CHECK(source >= last, "[lstm] reorder: lanes must stay in the order of their sources");
    last = source;
    ++lanes[source];
  }
  recurrence_.take_lanes(at::tensor(parents, at::kLong).to(query_offsets_.values.device()));
  if (lanes != lanes_) leave(lanes);
}

// Sources without a lane leave, and the rows of their memory.
void RecurrentStreamDecoder::leave(const std::vector<int64_t>& lanes) {
  std::vector<int64_t> rows, kept_lengths, kept_lanes;
  int64_t first = 0;
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (lanes[i] > 0) {
      for (int64_t row = 0; row < lengths_[i]; ++row) rows.push_back(first + row);
      kept_lengths.push_back(lengths_[i]);
      kept_lanes.push_back(lanes[i]);
    }
    first += lengths_[i];
  }
  const bool some_left = kept_lengths.size() < lengths_.size();
  lengths_ = std::move(kept_lengths);
  lanes_ = std::move(kept_lanes);
  if (lengths_.empty()) return;
  const c10::Device device = query_offsets_.values.device();
  query_offsets_ = kernels::offsets_of(lanes_, device);
  if (some_left) {
    recurrence_.take_memory(at::tensor(rows, at::kLong).to(device),
                            kernels::offsets_of(lengths_, device));
  }
}

}  // namespace stretto::models
