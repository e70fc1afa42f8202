#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "experiment/family_export.h"
#include "store/safetensors.h"

/// What exporters to formats of other programs share: rows of int8, and tensors that are taken one
/// by one.
namespace stretto::interchange {

using experiment::StoredWeights;

/// Tensors of a model by their names. Those that are taken are noted: a writer shows with
/// require_all_taken() that it left nothing out.
class NamedTensors {
 public:
  /// The bytes of the views must outlive this object.
  explicit NamedTensors(std::vector<store::TensorView> tensors);

  /// Throws Error(kBadData) where there is none.
  const store::TensorView& take(const std::string& name);
  /// Null where there is none.
  const store::TensorView* find(const std::string& name);
  /// Throws Error(kBadData) that names the first tensor which was not taken.
  /// @param format  for the message: "CTranslate2"
  void require_all_taken(std::string_view format) const;

 private:
  std::vector<store::TensorView> tensors_;
  std::unordered_map<std::string, size_t> places_;
  std::set<std::string> taken_;
};

/// Rows [from, from + count) of a tensor of at least one dimension, as a view.
store::TensorView rows_of(const store::TensorView& tensor, int64_t from, int64_t count);

/// Elements of an F32 tensor, as many as its shape says.
std::vector<float> floats_of(const store::TensorView& tensor);
/// The same as bytes, little-endian.
std::string bytes_of_floats(const std::vector<float>& values);

/// What the weights of each row are multiplied by to be int8: 127 / max |w|, of a row of zeros 1.
std::vector<float> int8_scales(const std::vector<float>& values, int64_t rows);
/// Rows times their scales, to nearest, ties to even: an int8 for each weight.
std::string int8_codes(const std::vector<float>& values, const std::vector<float>& scales);

}  // namespace stretto::interchange
