#include "optim/arena.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "base/hash.h"

namespace stretto::optim {
namespace {

constexpr int64_t kAlignment = 16;  // elements; 64 bytes in fp32, one cache line

int64_t aligned(int64_t n) {
  return (n + kAlignment - 1) / kAlignment * kAlignment;
}

struct Named {
  std::string name;
  torch::Tensor tensor;
};

// The parameters that train, or the frozen ones. Matrices first, then vectors; inside each group in
// the order of registration.
std::vector<Named> distinct_parameters(const torch::nn::Module& model, bool frozen = false) {
  std::vector<Named> found;
  std::unordered_set<const void*> seen;
  for (const auto& item : model.named_parameters()) {
    if (item.value().requires_grad() == frozen) continue;
    if (seen.insert(item.value().unsafeGetTensorImpl()).second) {
      found.push_back({item.key(), item.value()});
    }
  }
  std::stable_partition(found.begin(), found.end(),
                        [](const Named& p) { return p.tensor.dim() >= 2; });
  return found;
}

}  // namespace

Arena::Arena(torch::nn::Module& model, Gradients gradients,
             const std::vector<LateParameter>& late) {
  const auto parameters = distinct_parameters(model);
  TORCH_CHECK(!parameters.empty(), "[arena] the model has no parameters");
  int64_t offset = 0;
  for (const auto& [name, tensor] : parameters) {
    TORCH_CHECK(tensor.dtype() == parameters.front().tensor.dtype() &&
                    tensor.device() == parameters.front().tensor.device(),
                "[arena] ", name, " has another dtype or device than the parameters before it");
    slots_.push_back({name, offset, tensor.numel(), tensor.sizes().vec()});
    for (const LateParameter& one : late) {
      if (one.name == name) slots_.back().begins = one.begins;
    }
    any_late_ = any_late_ || slots_.back().begins > 0;
    offset = aligned(offset + tensor.numel());
    num_parameters_ += tensor.numel();
  }
  torch::NoGradGuard no_grad;
  params_ = torch::zeros({offset}, parameters.front().tensor.options().requires_grad(false));
  if (gradients == Gradients::kAllocated) grads_ = torch::zeros_like(params_);
  for (size_t i = 0; i < slots_.size(); ++i) {
    torch::Tensor parameter = parameters[i].tensor;
    torch::Tensor place = view(params_, slots_[i]);
    place.copy_(parameter);
    parameter.set_data(place);
    if (grads_.defined()) parameter.mutable_grad() = view(grads_, slots_[i]);
    parameters_.push_back(parameter);
  }
  for (const auto& item : model.named_buffers()) {
    if (!item.value().defined()) continue;
    TORCH_CHECK(item.value().dtype() == torch::kFloat32 && item.value().is_contiguous(),
                "[arena] buffer ", item.key(),
                " is not a dense fp32 tensor; checkpoints hold those");
    buffers_.push_back({item.key(), item.value()});
  }
  for (const auto& [name, tensor] : distinct_parameters(model, /*frozen=*/true)) {
    TORCH_CHECK(tensor.dtype() == params_.dtype() && tensor.device() == params_.device() &&
                    tensor.is_contiguous(),
                "[arena] frozen parameter ", name,
                " has another dtype or device than those that train, or is not dense");
    buffers_.push_back({name, tensor, /*is_parameter=*/true});
  }
}

bool Arena::train_after(int64_t updates) {
  if (!any_late_) return false;
  bool changed = false;
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    const bool now = trains(slot, updates);
    changed = changed || parameters_[slot].requires_grad() != now;
    parameters_[slot].set_requires_grad(now);
  }
  return changed;
}

void Arena::set_part_rows(const torch::Tensor& parameter, std::vector<int64_t> rows) {
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (!parameters_[slot].is_same(parameter)) continue;
    const int64_t sum = std::accumulate(rows.begin(), rows.end(), int64_t{0});
    TORCH_CHECK(parameter.dim() >= 2 && sum == parameter.size(0), "[arena] ", slots_[slot].name,
                " is ", parameter.sizes(), ", and its parts have ", sum, " rows");
    slots_[slot].part_rows = std::move(rows);
    return;
  }
}

torch::Tensor Arena::view(const torch::Tensor& buffer, const Slot& slot) {
  return buffer.narrow(0, slot.offset, slot.numel).view(slot.shape);
}

uint64_t Arena::weights_hash() const {
  const torch::Tensor host = params_.cpu();
  std::vector<Named> order;
  for (const auto& slot : slots_) {
    order.push_back({slot.name, host.narrow(0, slot.offset, slot.numel)});
  }
  for (const auto& buffer : buffers_) {
    if (buffer.is_parameter) order.push_back({buffer.name, buffer.values.detach().cpu()});
  }
  std::sort(order.begin(), order.end(),
            [](const Named& a, const Named& b) { return a.name < b.name; });
  Xxh3Stream hash;
  for (const auto& [name, part] : order) {
    hash.update(part.data_ptr(), static_cast<size_t>(part.nbytes()));
  }
  return hash.digest();
}

}  // namespace stretto::optim
