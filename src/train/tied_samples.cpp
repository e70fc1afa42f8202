#include "train/tied_samples.h"

#include <algorithm>

#include "nn/batch_norm.h"

namespace stretto::train {

TiedBy samples_tied_by(Task& task) {
  const auto norms = nn::batch_norms(task.model());
  const auto is_frozen = [](const nn::BatchNormImpl* norm) { return norm->is_frozen(); };
  if (!std::ranges::all_of(norms, is_frozen)) return TiedBy::kBatchNorm;
  return task.carry().empty() ? TiedBy::kNothing : TiedBy::kCarry;
}

const char* reason_of(TiedBy tied) {
  switch (tied) {
    case TiedBy::kNothing:
      return "";
    case TiedBy::kBatchNorm:
      return "batch norm would make another update of it";
    case TiedBy::kCarry:
      return "its lanes take a state to the next update";
  }
  return "";
}

}  // namespace stretto::train
