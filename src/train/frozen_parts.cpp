#include "train/frozen_parts.h"

#include <map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "nn/batch_norm.h"
#include "optim/frozen_names.h"

namespace stretto::train {
namespace {

/// A tensor with all the names by which the model registers it, and those that the task knows.
struct NamedTensor {
  optim::TensorName name;
  torch::Tensor values;
};

std::vector<NamedTensor> tensors_of(Task& task) {
  std::vector<NamedTensor> tensors;
  std::map<const void*, size_t> places;
  for (const auto& item : task.model().named_parameters()) {
    const auto [place, is_new] = places.emplace(item.value().unsafeGetTensorImpl(), tensors.size());
    if (is_new) {
      tensors.push_back({{item.key(), item.value().dim() <= 1}, item.value()});
    } else {
      tensors[place->second].name.also.push_back(item.key());
    }
  }
  for (const auto& tied : task.tied_names()) {
    for (auto& tensor : tensors) {
      if (tensor.name.name == tied.parameter) tensor.name.also.push_back(tied.name);
    }
  }
  return tensors;
}

void require_sound(const std::vector<std::string>& patterns,
                   const std::vector<NamedTensor>& tensors) {
  std::vector<optim::TensorName> names;
  for (const auto& tensor : tensors) names.push_back(tensor.name);
  const auto problems = optim::freeze_problems(patterns, names);
  if (problems.empty()) return;
  throw Error(ExitCode::kUsage, "train.freeze: " + problems.front().what, problems.front().hint);
}

// By which of its names a tensor is frozen that is not frozen by its own; empty = by its own.
std::string tied_name(const std::vector<std::string>& patterns, const optim::TensorName& tensor) {
  if (optim::is_frozen(patterns, {tensor.name})) return "";
  for (const auto& name : tensor.also) {
    if (optim::is_frozen(patterns, {name})) return name;
  }
  return "";
}

}  // namespace

std::string FrozenParts::text() const {
  return with_thousands(num_frozen) + " in " + counted(num_frozen_tensors, "tensor") +
         " (train.freeze)";
}

FrozenParts freeze_parts(Task& task, const std::vector<std::string>& patterns) {
  FrozenParts parts;
  auto tensors = tensors_of(task);
  require_sound(patterns, tensors);
  for (auto& [name, values] : tensors) {
    const bool frozen = optim::is_frozen(patterns, name);
    (frozen ? parts.num_frozen : parts.num_trained) += values.numel();
    (frozen ? parts.num_frozen_tensors : parts.num_trained_tensors) += 1;
    if (!frozen) continue;
    values.set_requires_grad(false);
    if (const auto other = tied_name(patterns, name); !other.empty()) {
      parts.tied.push_back("`" + name.name + "` as `" + other + "`");
    }
  }
  if (patterns.empty()) return parts;
  for (nn::BatchNormImpl* norm : nn::batch_norms(task.model())) {
    if (norm->weight.requires_grad() || norm->bias.requires_grad()) continue;
    norm->freeze();
    ++parts.num_batch_norms;
  }
  return parts;
}

}  // namespace stretto::train
