#include "parallel/carry.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "parallel/tensor_buffer.h"

namespace stretto::parallel {
namespace {

constexpr const char* kAdvice =
    "train.update_freq is to be the number of micro-batches that the data make of their lanes, or "
    "a divisor of it";

[[noreturn]] void refuse(int32_t lane, const std::string& what) {
  throw Error(ExitCode::kUsage, "lane " + std::to_string(lane) + " " + what, kAdvice);
}

}  // namespace

Carry::Carry(const std::vector<LaneState>& first, distributed::ProcessGroup group)
    : group_(std::move(group)) {
  for (const LaneState& state : first) {
    TORCH_CHECK(state.values.defined() && state.values.dim() > 0 && state.values.size(0) > 0 &&
                    state.values.scalar_type() == at::kFloat,
                "[carry] `", state.name, "` must be fp32 [lanes, ...]");
    TORCH_CHECK(state.values.size(0) == first.front().values.size(0), "[carry] `", state.name,
                "` has ", state.values.size(0), " lanes, `", first.front().name, "` has ",
                first.front().values.size(0));
    states_.push_back({state.name, state.values.detach().clone(at::MemoryFormat::Contiguous)});
  }
  if (!empty()) micro_batch_of_.assign(static_cast<size_t>(first.front().values.size(0)), -1);
}

at::Tensor Carry::index_of(const Lanes& lanes) const {
  const std::vector<int64_t> numbers(lanes.begin(), lanes.end());
  return at::tensor(numbers, at::kLong).to(states_.front().values.device());
}

std::vector<at::Tensor> Carry::rows(const Lanes& lanes) const {
  std::vector<at::Tensor> rows;
  if (empty()) return rows;
  const at::NoGradGuard no_grad;
  const at::Tensor index = index_of(lanes);
  for (const LaneState& state : states_) rows.push_back(state.values.index_select(0, index));
  return rows;
}

void Carry::begin(const std::vector<Lanes>& micro_batches) {
  proposals_.clear();
  std::vector<bool> seen(micro_batch_of_.size());
  for (size_t micro = 0; micro < micro_batches.size(); ++micro) {
    for (const int32_t lane : micro_batches[micro]) {
      if (lane < 0 || lane >= num_lanes()) {
        refuse(lane, "does not exist: the state has " + std::to_string(num_lanes()) + " lanes");
      }
      const auto at = static_cast<size_t>(lane);
      if (seen[at]) refuse(lane, "comes twice in one update");
      seen[at] = true;
      const auto number = static_cast<int64_t>(micro);
      int64_t& known = micro_batch_of_[at];
      if (known >= 0 && known != number) {
        refuse(lane, "comes in micro-batch " + std::to_string(number) +
                         " of an update, and came in micro-batch " + std::to_string(known) +
                         " of another: no process would have its state");
      }
      known = number;
    }
  }
}

void Carry::propose(const Lanes& lanes, const std::vector<at::Tensor>& next) {
  TORCH_CHECK(next.size() == states_.size(), "[carry] a micro-batch proposes ", next.size(),
              " tensors, the state has ", states_.size());
  Proposal proposal{.lanes = index_of(lanes), .next = {}};
  for (size_t i = 0; i < next.size(); ++i) {
    const at::Tensor& values = states_[i].values;
    std::vector<int64_t> shape = values.sizes().vec();
    shape.front() = static_cast<int64_t>(lanes.size());
    TORCH_CHECK(next[i].sizes() == at::IntArrayRef(shape), "[carry] `", states_[i].name,
                "` of a micro-batch has shape ", next[i].sizes(), ", expected ",
                at::IntArrayRef(shape));
    proposal.next.push_back(next[i].detach().to(values.options()));
  }
  proposals_.push_back(std::move(proposal));
}

void Carry::commit() {
  const at::NoGradGuard no_grad;
  for (const Proposal& proposal : proposals_) {
    for (size_t i = 0; i < states_.size(); ++i) {
      states_[i].values.index_copy_(0, proposal.lanes, proposal.next[i]);
    }
  }
  proposals_.clear();
}

// Whole micro-batches fall to ranks in turn. All ranks have the same state of a lane that has not
// come yet.
std::pair<at::Tensor, std::vector<int64_t>> Carry::lanes_by_rank() const {
  Lanes lanes;
  std::vector<int64_t> begins{0};
  for (int rank = 0; rank < group_.size(); ++rank) {
    for (size_t lane = 0; lane < micro_batch_of_.size(); ++lane) {
      const int64_t micro_batch = std::max<int64_t>(micro_batch_of_[lane], 0);
      if (micro_batch % group_.size() == rank) lanes.push_back(static_cast<int32_t>(lane));
    }
    begins.push_back(static_cast<int64_t>(lanes.size()));
  }
  return {index_of(lanes), begins};
}

void Carry::gather() {
  if (empty() || group_.size() == 1) return;
  const at::NoGradGuard no_grad;
  const auto [index, rows] = lanes_by_rank();
  for (LaneState& state : states_) {
    const int64_t width = state.values.numel() / num_lanes();
    std::vector<int64_t> begins;
    for (const int64_t row : rows) begins.push_back(row * width);
    const at::Tensor sent = state.values.index_select(0, index).contiguous();
    group_.all_gather(buffer_of(sent), begins);
    state.values.index_copy_(0, index, sent);
  }
}

}  // namespace stretto::parallel
