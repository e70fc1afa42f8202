#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/quantised.h"
#include "store/safetensors.h"

/// What a packed model file will take, tensor by tensor, before a weight of it is rounded.
namespace stretto::store {

struct QuantRequest {
  QuantFormat format = {};
  /// Patterns (base/name_pattern.h) of tensors that stay as they are.
  std::vector<std::string> kept = {};
  /// The same of tensors that are no weights: the rows and scales of LoRA's parts (nn/lora.h). They
  /// need not be there.
  std::vector<std::string> no_weights = {"*.lora_parts"};
  /// Patterns of tensors that have another format, the first that matches counts: token tables at 8
  /// bits beside matrices of 4, say.
  std::vector<std::pair<std::string, QuantFormat>> others = {};
};

struct PlannedTensor {
  std::string name;
  DType dtype = DType::kF32;  ///< of a tensor that stays as it is
  std::vector<int64_t> shape;
  std::optional<QuantFormat> format = {};  ///< none: it stays as it is
  uint64_t bytes = 0;                      ///< with scales and zeros

  int64_t num_weights() const;
  double bits_per_weight() const;
};

struct QuantPlan {
  std::vector<PlannedTensor> tensors;  ///< in the order of the file

  uint64_t bytes() const;       ///< of all tensors
  uint64_t fp32_bytes() const;  ///< of all tensors, four bytes a weight
  int64_t num_weights() const;
  double bits_per_weight() const;  ///< of all: scales, biases, norms and tables too
  /// Of the metadata of the file, without its identity.
  std::string metadata() const;
  /// The size of the file, to the byte, where tensors that stay as they are precede packed ones in
  /// the order of their names: offsets in its header have more or fewer digits in another order.
  /// @param metadata  all of it
  uint64_t file_bytes(const std::map<std::string, std::string>& metadata) const;
  /// A line for each format with tensors, weights, bits a weight and bytes, then their sum.
  std::string table() const;
};

/// Matrices and filters of floating-point numbers are packed, also token tables; vectors (biases,
/// norms) stay as they are. Throws Error(kUsage) that lists what cannot be packed as asked (nothing
/// is left wider in silence), for a pattern that matches nothing, and for a request that packs
/// nothing.
QuantPlan plan_quantised(const std::vector<TensorView>& tensors, const QuantRequest& request,
                         const std::string& where);

}  // namespace stretto::store
