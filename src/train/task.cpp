#include "train/task.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace stretto::train {

double Totals::loss() const {
  double sum = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    const bool is_absent = losses.size() > 1 && weights[i] == 0;
    if (!is_absent) sum += losses[i] / weights[i];
  }
  return sum;
}

std::vector<at::Tensor> StepContext::carry_of(const data::Batch& batch) const {
  TORCH_CHECK(carry != nullptr, "[task] there is no state of lanes here");
  TORCH_CHECK(std::ssize(batch.lanes) == batch.num_sequences(), "[task] a batch of ",
              batch.num_sequences(), " samples has ", batch.lanes.size(), " lanes");
  return carry->rows(batch.lanes);
}

const Score* find_score(const std::vector<Score>& scores, const std::string& name) {
  const auto found = std::ranges::find(scores, name, &Score::name);
  return found == scores.end() ? nullptr : &*found;
}

Preparation preparation_of(const Task& task, at::Device device) {
  return {.prepare = [&task](data::Batch batch) { return task.prepare(std::move(batch)); },
          .device = device};
}

at::Tensor objective(const std::vector<at::Tensor>& losses, const std::vector<double>& divisors) {
  if (losses.size() == 1) return losses.front();
  at::Tensor sum;
  for (size_t i = 0; i < losses.size(); ++i) {
    if (divisors.at(i) == 0) continue;
    const at::Tensor term = losses[i] / divisors[i];
    sum = sum.defined() ? sum + term : term;
  }
  TORCH_CHECK(sum.defined(), "[task] no loss of this update has a weight");
  return sum;
}

}  // namespace stretto::train
