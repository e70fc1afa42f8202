#include "compress/pruned_file.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <utility>

namespace stretto::compress {
namespace {

at::ScalarType type_in_file(const store::TensorView& tensor) {
  switch (tensor.dtype) {
    case store::DType::kF64:
      return at::kDouble;
    case store::DType::kF16:
      return at::kHalf;
    case store::DType::kBF16:
      return at::kBFloat16;
    default:
      TORCH_CHECK(tensor.dtype == store::DType::kF32, "[prune] `", tensor.name,
                  "` has no floating-point numbers");
      return at::kFloat;
  }
}

at::Tensor fp32_copy_of(const store::TensorView& tensor) {
  // from_blob() wants a pointer that may be written through; nothing is.
  auto* bytes = const_cast<char*>(tensor.bytes.data());
  return at::from_blob(bytes, tensor.shape, at::dtype(type_in_file(tensor)))
      .to(at::kFloat, /*non_blocking=*/false, /*copy=*/true)
      .contiguous();
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
