#include "train/frozen_parts.h"

#include <map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "nn/adapter.h"
#include "nn/batch_norm.h"
#include "nn/lora.h"
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

optim::TrainingPlan plan_of(const torch::nn::Module& model,
                            const std::vector<std::string>& patterns,
                            const std::vector<std::string>& unfreeze) {
  optim::TrainingPlan plan{.freeze = patterns};
  for (const std::string& entry : unfreeze) {
    optim::LateStart start;
    if (const auto problem = optim::read_late_start(entry, start)) {
      throw Error(ExitCode::kUsage, "train.unfreeze: " + problem->what, problem->hint);
    }
    plan.unfreeze.push_back(std::move(start));
  }
  if (const auto lora = nn::lora_of(model)) {
    plan.adding.push_back({"model.lora", lora->train_patterns(), &nn::is_lora});
  }
  if (const auto adapter = nn::adapter_of(model)) {
    plan.adding.push_back({"model.adapter", adapter->train_patterns(), &nn::is_adapter});
  }
  return plan;
}

void require_sound(const optim::TrainingPlan& plan, const std::vector<optim::TensorName>& names) {
  const auto problems = optim::plan_problems(plan, names);
  if (problems.empty()) return;
  const auto& [key, problem] = problems.front();
  throw Error(ExitCode::kUsage, key + ": " + problem.what, problem.hint);
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
  return with_thousands(num_frozen) + " in " + counted(num_frozen_tensors, "tensor") + " (" +
         (adding.empty() ? "train.freeze" : join(adding, ", ")) + ")";
}

std::string FrozenParts::late_text() const {
  std::map<int64_t, std::pair<int64_t, int64_t>> by_update;  // parameters, tensors
  for (size_t i = 0; i < late.size(); ++i) {
    auto& [parameters, tensors] = by_update[late[i].begins];
    parameters += late_sizes[i];
    ++tensors;
  }
  std::vector<std::string> texts;
  for (const auto& [update, numbers] : by_update) {
    texts.push_back(with_thousands(numbers.first) + " in " + counted(numbers.second, "tensor") +
                    " after " + counted(update, "update"));
  }
  return join(texts, ", ");
}

std::vector<optim::TensorName> tensor_names(Task& task) {
  return tensors_of(task).names;
}

FrozenParts freeze_parts(Task& task, const std::vector<std::string>& patterns,
                         const std::vector<std::string>& unfreeze) {
  FrozenParts parts;
  auto tensors = tensors_of(task);
  const auto plan = plan_of(task.model(), patterns, unfreeze);
  require_sound(plan, tensors.names);
  for (const auto& one : plan.adding) parts.adding.push_back(one.section);
  for (size_t i = 0; i < tensors.values.size(); ++i) {
    const optim::TensorName& name = tensors.names[i];
    torch::Tensor& values = tensors.values[i];
    const auto begins = plan.begins(name);
    (begins ? parts.num_trained : parts.num_frozen) += values.numel();
    (begins ? parts.num_trained_tensors : parts.num_frozen_tensors) += 1;
    if (begins && *begins > 0) {
      values.set_requires_grad(true);  // until its arena says otherwise
      parts.late.push_back({name.name, *begins});
      parts.late_sizes.push_back(values.numel());
    }
    if (begins) continue;
    values.set_requires_grad(false);
    if (const auto other = tied_name(patterns, name); !other.empty()) {
      parts.tied.push_back("`" + name.name + "` as `" + other + "`");
    }
  }
  if (parts.num_frozen == 0) return parts;
  for (nn::BatchNormImpl* norm : nn::batch_norms(task.model())) {
    if (norm->weight.requires_grad() || norm->bias.requires_grad()) continue;
    norm->freeze();
    ++parts.num_batch_norms;
  }
  return parts;
}

}  // namespace stretto::train
