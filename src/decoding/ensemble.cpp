#include "decoding/ensemble.h"

#include <ATen/ops/logsumexp.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace stretto::decoding {

EnsembleStepModel::EnsembleStepModel(std::vector<std::unique_ptr<StepModel>> members)
    : members_(std::move(members)) {
  TORCH_CHECK(!members_.empty(), "[ensemble] needs at least one model");
  for (const auto& member : members_) {
    TORCH_CHECK(member->vocab_size() == vocab_size(), "[ensemble] vocabularies of ", vocab_size(),
                " and ", member->vocab_size(), " entries; the members must share one");
  }
}

template <class Of>
at::Tensor EnsembleStepModel::mean(const Of& of) {
  if (members_.size() == 1) return of(*members_.front());
  std::vector<at::Tensor> log_probs;
  for (const auto& member : members_) log_probs.push_back(of(*member));
  return at::logsumexp(at::stack(log_probs), 0) - std::log(static_cast<double>(members_.size()));
}

at::Tensor EnsembleStepModel::step(const at::Tensor& tokens) {
  return mean([&](StepModel& member) { return member.step(tokens); });
}

at::Tensor EnsembleStepModel::prefill(const at::Tensor& prompts, int64_t lanes_per_source) {
  return mean([&](StepModel& member) { return member.prefill(prompts, lanes_per_source); });
}

at::Tensor EnsembleStepModel::prefill_packed(const PackedPrompts& prompts,
                                             int64_t lanes_per_source) {
  return mean([&](StepModel& member) { return member.prefill_packed(prompts, lanes_per_source); });
}

bool EnsembleStepModel::takes_unequal_prompts() const {
  return std::all_of(members_.begin(), members_.end(),
                     [](const auto& member) { return member->takes_unequal_prompts(); });
}

at::Tensor EnsembleStepModel::log_normalisers() const {
  return members_.size() == 1 ? members_.front()->log_normalisers() : at::Tensor();
}

int64_t EnsembleStepModel::most_cache_bytes() const {
  int64_t bytes = 0;
  for (const auto& member : members_) bytes += member->most_cache_bytes();
  return bytes;
}

void EnsembleStepModel::reorder(const std::vector<int64_t>& parents) {
  for (const auto& member : members_) member->reorder(parents);
}

}  // namespace stretto::decoding
