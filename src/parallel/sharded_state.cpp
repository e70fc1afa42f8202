#include "parallel/sharded_state.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "parallel/tensor_buffer.h"

namespace stretto::parallel {

ShardedState::ShardedState(distributed::ProcessGroup group, Setup setup)
    : group_(std::move(group)), setup_(std::move(setup)) {}

std::vector<optim::StateTensor> ShardedState::empty(
    const std::vector<optim::StateTensor>& mine) const {
  std::vector<optim::StateTensor> tensors;
  for (const auto& tensor : mine) {
    tensors.push_back({.name = tensor.name,
                       .values = tensor.flat ? at::zeros({whole_size(tensor)}, at::kFloat)
                                             : at::zeros_like(tensor.values, at::kCPU),
                       .flat = tensor.flat,
                       .held = tensor.held});
  }
  return tensors;
}

std::vector<optim::StateTensor> ShardedState::gather(
    const std::vector<optim::StateTensor>& mine) const {
  if (!setup_.sliced) return group_.is_root() ? mine : std::vector<optim::StateTensor>{};
  std::vector<optim::StateTensor> tensors;
  for (const auto& tensor : mine) {
    const at::Tensor values = tensor.flat ? gather_slices(tensor) : tensor.values;
    if (group_.is_root()) tensors.push_back({tensor.name, values, tensor.flat, tensor.held});
  }
  return tensors;
}

// Turn by turn a part of each rank's slice, so that all have something to send. Undefined on other
// ranks than 0.
at::Tensor ShardedState::gather_slices(const optim::StateTensor& tensor) const {
  const at::Tensor& mine = tensor.values;
  std::vector<int64_t> slices;
  for (const int64_t begin : setup_.slice_begins) {
    slices.push_back(tensor.held.count_before(begin));
  }
  const auto size = static_cast<size_t>(group_.size()), rank = static_cast<size_t>(group_.rank());
  const int64_t each = std::max<int64_t>(1, setup_.chunk / group_.size());
  int64_t longest = 0;
  for (size_t r = 0; r < size; ++r) longest = std::max(longest, slices[r + 1] - slices[r]);
  at::Tensor whole;
  if (group_.is_root()) whole = at::zeros({whole_size(tensor)}, mine.options());
  at::Tensor room = at::empty({std::min(each, longest) * group_.size()}, mine.options());
  for (int64_t first = 0; first < longest; first += each) {
    std::vector<int64_t> begins{0};
    for (size_t r = 0; r < size; ++r) {
      const int64_t left = slices[r + 1] - slices[r] - first;
      begins.push_back(begins.back() + std::clamp<int64_t>(left, 0, each));
    }
    const auto part = [&](size_t r) {
      return room.narrow(0, begins[r], begins[r + 1] - begins[r]);
    };
    if (const int64_t count = begins[rank + 1] - begins[rank]; count > 0) {
      part(rank).copy_(mine.narrow(0, first, count));
    }
    group_.all_gather(buffer_of(room.narrow(0, 0, begins.back())), begins);
    for (size_t r = 0; whole.defined() && r < size; ++r) {
      const int64_t count = begins[r + 1] - begins[r];
      if (count > 0) whole.narrow(0, slices[r] + first, count).copy_(part(r));
    }
  }
  return whole;
}

void ShardedState::scatter(const std::vector<optim::StateTensor>& whole,
                           const std::vector<optim::StateTensor>& mine) const {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < mine.size(); ++i) {
    const at::Tensor given = group_.is_root() ? whole.at(i).values : at::Tensor();
    if (mine[i].flat) {
      scatter_slices(given, mine[i]);
    } else {
      broadcast_numbers(mine[i], given);
    }
  }
}

// `whole` only matters on rank 0.
void ShardedState::scatter_slices(const at::Tensor& whole, const optim::StateTensor& tensor) const {
  const at::Tensor& mine = tensor.values;
  const auto owned = tensor.held.place_of(setup_.owned);
  const int64_t size = whole_size(tensor);
  const int64_t each = std::min(std::max<int64_t>(1, setup_.chunk), size);
  at::Tensor room = at::empty({each}, mine.options());
  for (int64_t first = 0; first < size; first += each) {
    const int64_t count = std::min(each, size - first);
    at::Tensor sent = room.narrow(0, 0, count);
    if (group_.is_root()) sent.copy_(whole.narrow(0, first, count));
    group_.broadcast(buffer_of(sent));
    const int64_t from = std::max(first, owned.begin);
    const int64_t to = std::min(first + count, owned.end);
    if (from >= to) continue;
    mine.narrow(0, from - owned.begin, to - from).copy_(sent.narrow(0, from - first, to - from));
  }
}

// A few numbers in host memory, which not every group can broadcast. `given` only matters on rank
// 0.
void ShardedState::broadcast_numbers(const optim::StateTensor& mine,
                                     const at::Tensor& given) const {
  at::Tensor numbers = at::zeros_like(mine.values, at::kCPU);
  if (given.defined()) numbers.copy_(given);
  const auto* begin = reinterpret_cast<const char*>(numbers.const_data_ptr<float>());
  const std::string sent = group_.is_root() ? std::string(begin, numbers.nbytes()) : "";
  const std::string bytes = group_.all_gather_bytes(sent).front();
  TORCH_CHECK(bytes.size() == numbers.nbytes(), "[sharded_state] state `", mine.name, "` has ",
              bytes.size(), " bytes, expected ", numbers.nbytes());
  std::memcpy(numbers.data_ptr<float>(), bytes.data(), bytes.size());
  at::Tensor values = mine.values;
  values.copy_(numbers);
}

}  // namespace stretto::parallel
