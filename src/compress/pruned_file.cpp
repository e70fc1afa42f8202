#include "compress/pruned_file.h"

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <utility>

#include "compress/stored_numbers.h"

namespace stretto::compress {
namespace {

at::Tensor fp32_copy_of(const store::TensorView& tensor) {
  return stored_numbers(tensor).to(at::kFloat, /*non_blocking=*/false, /*copy=*/true).contiguous();
}

store::TensorView view_of_values(const std::string& name, const at::Tensor& values) {
  return {name,
          store::DType::kF32,
          values.sizes().vec(),
          {static_cast<const char*>(values.const_data_ptr()), values.nbytes()}};
}

}  // namespace

PrunedFile prune_file(const store::SafetensorsFile& model, const std::set<std::string>& names,
                      double sparsity, const std::string& scope) {
  std::vector<std::pair<std::string, at::Tensor>> chosen;
  for (const auto& tensor : model.tensors()) {
    if (names.contains(tensor.name)) chosen.emplace_back(tensor.name, fp32_copy_of(tensor));
  }
  PackedMasks masks = prune_tensors(chosen, sparsity, scope);
  std::vector<store::TensorView> views;
  std::vector<at::Tensor> values;
  size_t next = 0;
  for (const auto& tensor : model.tensors()) {
    if (!names.contains(tensor.name)) {
      views.push_back(tensor);
      continue;
    }
    values.push_back(chosen[next++].second);
    views.push_back(view_of_values(tensor.name, values.back()));
  }
  return PrunedFile{.file = store::SafetensorsFile(std::move(views), model.metadata()),
                    .values = std::move(values),
                    .masks = std::move(masks)};
}

PackedMasks joined(PackedMasks masks, const PackedMasks& others) {
  for (const auto& [name, bits] : others) {
    std::string& own = masks[name];
    if (own.size() < bits.size()) own.resize(bits.size(), '\0');
    for (size_t i = 0; i < bits.size(); ++i) own[i] = static_cast<char>(own[i] | bits[i]);
  }
  return masks;
}

}  // namespace stretto::compress
