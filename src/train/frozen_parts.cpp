#include "train/frozen_parts.h"

#include <map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "nn/batch_norm.h"
#include "optim/frozen_names.h"

namespace stretto::train {
namespace {

/// The parameters of a model, each with all the names by which the model registers it, and those
/// that the task knows.
struct NamedTensors {
  std::vector<optim::TensorName> names;
  std::vector<torch::Tensor> values;
};

NamedTensors tensors_of(Task& task) {
  NamedTensors tensors;
  std::map<const void*, size_t> places;
  for (const auto& item : task.model().named_parameters()) {
    const auto [place, is_new] =
        places.emplace(item.value().unsafeGetTensorImpl(), tensors.values.size());
    if (is_new) {
      tensors.names.push_back({item.key(), item.value().dim() <= 1});
      tensors.values.push_back(item.value());
    } else {
      tensors.names[place->second].also.push_back(item.key());
    }
  }
  optim::add_tied_names(task.tied_names(), tensors.names);
  return tensors;
}

void require_sound(const std::vector<std::string>& patterns,
                   const std::vector<optim::TensorName>& names) {
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
  require_sound(patterns, tensors.names);
  for (size_t i = 0; i < tensors.values.size(); ++i) {
    const optim::TensorName& name = tensors.names[i];
    torch::Tensor& values = tensors.values[i];
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
