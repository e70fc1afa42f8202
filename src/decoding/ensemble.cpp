#include "decoding/ensemble.h"

#include <ATen/ops/logsumexp.h>
#include <ATen/ops/stack.h>

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

at::Tensor EnsembleStepModel::step(const at::Tensor& tokens) {
  if (members_.size() == 1) return members_.front()->step(tokens);
  std::vector<at::Tensor> log_probs;
  for (const auto& member : members_) log_probs.push_back(member->step(tokens));
  return at::logsumexp(at::stack(log_probs), 0) - std::log(static_cast<double>(members_.size()));
}

void EnsembleStepModel::reorder(const std::vector<int64_t>& parents) {
  for (const auto& member : members_) member->reorder(parents);
}

}  // namespace stretto::decoding
