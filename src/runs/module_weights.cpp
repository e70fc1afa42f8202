#include "runs/module_weights.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <set>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/name_pattern.h"
#include "runs/stored_targets.h"
#include "runs/tensors_fit.h"

namespace stretto::runs {
namespace {

/// A tensor of a module, under its name.
struct ModuleTensor {
  std::string name;
  at::Tensor values;
};

std::vector<ModuleTensor> tensors_of(const torch::nn::Module& module) {
  std::vector<ModuleTensor> tensors;
  std::unordered_set<const void*> seen;
  for (const auto& item : module.named_parameters()) {
    const bool is_new = seen.insert(item.value().unsafeGetTensorImpl()).second;
    if (is_new) tensors.push_back({item.key(), item.value()});
  }
  for (const auto& item : module.named_buffers()) {
    if (item.value().defined()) tensors.push_back({item.key(), item.value()});
  }
  return tensors;
}

/// nullopt: the file has integers.
std::optional<at::ScalarType> floating_type(store::DType dtype) {
  switch (dtype) {
    case store::DType::kF64:
      return at::kDouble;
    case store::DType::kF32:
      return at::kFloat;
    case store::DType::kF16:
      return at::kHalf;
    case store::DType::kBF16:
      return at::kBFloat16;
    default:
      return std::nullopt;
  }
}

std::optional<TensorMismatch> mismatch_of(const store::SafetensorsFile& file,
                                          const ModuleTensor& tensor) {
  const auto* found = file.find(tensor.name);
  if (auto problem = shape_mismatch(found, tensor.name, tensor.values.sizes().vec()))
    return problem;
  const std::string type = "is " + std::string(store::name_of(found->dtype));
  if (!floating_type(found->dtype)) {
    return TensorMismatch{tensor.name, type + ", the model wants floating-point numbers"};
  }
  if (!at::isFloatingType(tensor.values.scalar_type())) {
    return TensorMismatch{tensor.name, type + ", the model wants integers"};
  }
  return std::nullopt;
}

void require_all_of_module(const store::SafetensorsFile& file, const std::string& where,
                           const std::vector<ModuleTensor>& tensors, std::string_view left_out) {
  std::vector<TensorMismatch> mismatches;
  std::set<std::string> names;
  for (const ModuleTensor& tensor : tensors) {
    names.insert(tensor.name);
    if (const auto problem = mismatch_of(file, tensor)) mismatches.push_back(*problem);
  }
  for (const auto& stored : file.tensors()) {
    if (!names.contains(stored.name) && !matches(left_out, stored.name))
      mismatches.push_back(unexpected_tensor(stored.name));
  }
  require_fit(mismatches, where);
}

void require_finite_module(const std::string& where, const std::vector<ModuleTensor>& tensors) {
  for (const ModuleTensor& tensor : tensors) {
    if (all_finite(tensor.values)) continue;
    throw Error(ExitCode::kNumeric,
                where + ": `" + tensor.name + "` has values that are infinite or NaN",
                "name another checkpoint with --checkpoint, or train or import the run anew");
  }
}

}  // namespace

void load_weights(const store::SafetensorsFile& file, const std::string& where,
                  torch::nn::Module& module, std::string_view left_out) {
  const std::vector<ModuleTensor> tensors = tensors_of(module);
  require_all_of_module(file, where, tensors, left_out);
  const at::NoGradGuard no_grad;
  for (const ModuleTensor& tensor : tensors) {
    const auto& stored = *file.find(tensor.name);
    // from_blob wants a mutable pointer; the copy only reads.
    tensor.values.copy_(at::from_blob(const_cast<char*>(stored.bytes.data()),
                                      at::IntArrayRef(stored.shape),
                                      at::dtype(*floating_type(stored.dtype))));
  }
  require_finite_module(where, tensors);
}

void load_weights(const store::LoadedCheckpoint& checkpoint, torch::nn::Module& module,
                  std::string_view left_out) {
  load_weights(checkpoint.file("model"), checkpoint.directory.string() + "/model.safetensors",
               module, left_out);
}

}  // namespace stretto::runs
