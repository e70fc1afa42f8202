#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "store/safetensors.h"

/// What is said of stored tensors that are not those of a model.
namespace stretto::runs {

/// A tensor that does not fit.
struct TensorMismatch {
  std::string name;
  std::string what;  ///< goes on behind the name: "is missing"

  bool operator==(const TensorMismatch&) const = default;
};

/// "[512, 64]".
std::string shape_text(const std::vector<int64_t>& shape);

/// That a tensor is missing (`found` is null) or has another shape, if either is so.
std::optional<TensorMismatch> shape_mismatch(const store::TensorView* found,
                                             const std::string& name,
                                             const std::vector<int64_t>& shape);

/// That a model has no tensor of this name.
TensorMismatch unexpected_tensor(const std::string& name);

/// An Error(kBadData) of what does not fit. Tensors whose names differ only in numbers between
/// dots, and of which the same is said, are told together: "`layers.*.weight` is missing (6
/// tensors)". Of many entries these are the first three and how many tensors more; then all
/// misfits, each by itself, are the details.
/// @param what  is said in front of them
Error mismatch_error(const std::string& what, const std::vector<TensorMismatch>& mismatches,
                     std::string advice);

/// Throws what mismatch_error() makes; returns where there are none. @param where  the file
void require_fit(const std::vector<TensorMismatch>& mismatches, const std::string& where);

}  // namespace stretto::runs
