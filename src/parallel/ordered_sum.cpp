#include "parallel/ordered_sum.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "parallel/tensor_buffer.h"

namespace stretto::parallel {

OrderedSum::OrderedSum(at::Tensor grads, distributed::ProcessGroup group,
                       std::vector<int64_t> slice_begins)
    : grads_(std::move(grads)), group_(std::move(group)), begins_(std::move(slice_begins)) {
  const int64_t slice = begins_[static_cast<size_t>(group_.rank()) + 1] - begin_of_slice();
  sum_ = at::zeros({slice}, grads_.options());
  if (group_.size() > 1) received_ = at::empty({group_.size() * slice}, grads_.options());
}

void OrderedSum::begin(int64_t micro_batches) {
  const std::string mine(reinterpret_cast<const char*>(&micro_batches), sizeof(micro_batches));
  batches_.clear();
  for (const std::string& bytes : group_.all_gather_bytes(mine)) {
    int64_t count = 0;
    std::memcpy(&count, bytes.data(), std::min(bytes.size(), sizeof(count)));
    batches_.push_back(count);
  }
  rounds_ = *std::max_element(batches_.begin(), batches_.end());
  round_ = 0;
  bytes_ = 0;
  sum_.zero_();
}

void OrderedSum::add_round() {
  const at::NoGradGuard no_grad;
  if (group_.size() > 1) {
    group_.exchange(buffer_of(grads_), buffer_of(received_), begins_);
    bytes_ += static_cast<int64_t>(grads_.nbytes());
  }
  const at::Tensor& parts = group_.size() > 1 ? received_ : grads_;
  for (int64_t rank = 0; rank < group_.size(); ++rank) {
    if (batches_[static_cast<size_t>(rank)] <= round_) continue;
    sum_.add_(parts.narrow(0, rank * sum_.numel(), sum_.numel()));
  }
  ++round_;
}

void OrderedSum::finish(bool everywhere) {
  grads_.narrow(0, begin_of_slice(), sum_.numel()).copy_(sum_);
  if (!everywhere || group_.size() == 1) return;
  group_.all_gather(buffer_of(grads_), begins_);
  bytes_ += static_cast<int64_t>(grads_.nbytes());
}

}  // namespace stretto::parallel
