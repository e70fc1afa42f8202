#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "optim/arena.h"
#include "runs/tensors_fit.h"
#include "store/safetensors.h"

/// Tensors of a model that are to be filled from a safetensors file: what the file must have for
/// them, and the copy.
namespace stretto::runs {

/// A matrix of which each row is looked up in the file instead of taken at its place.
struct MatchedTable {
  std::string parameter;
  /// For each row of the model's table the row in the file, or -1: it stays as it is, and so do
  /// rows beyond the end of this list. At least one row is stored.
  std::vector<int64_t> rows;
  /// Name of the vocabulary whose pieces the rows in the file stand for, as the task calls it in
  /// messages; empty = there is only one. A table of this name that the model does not have says it
  /// of the file's.
  std::string vocabulary = {};
};

/// A tensor that is to be filled from a file, under its name there.
struct StoredTarget {
  std::string stored_name, name;
  at::Tensor values;
  const MatchedTable* matched = nullptr;
};

/// The slots as parts of `flat`, at their offsets, each under prefix + name.
std::vector<StoredTarget> slot_targets(const std::string& prefix,
                                       const std::vector<optim::Arena::Slot>& slots,
                                       const at::Tensor& flat);
/// All weights and buffers under their own names. @param matched  must outlive the targets
std::vector<StoredTarget> weight_targets(const optim::Arena& arena,
                                         const std::vector<MatchedTable>& matched);

/// The shape that the file must have: a matched table's rows are the file's own, if they are
/// enough.
std::vector<int64_t> stored_shape(const store::SafetensorsFile& file, const StoredTarget& target);

/// What is wrong with a stored tensor, if it cannot be taken.
std::optional<TensorMismatch> mismatch(const store::SafetensorsFile& file,
                                       const std::string& stored_name, const std::string& name,
                                       const std::vector<int64_t>& shape);
std::optional<TensorMismatch> mismatch(const store::SafetensorsFile& file,
                                       const StoredTarget& target);

/// Throws Error(kBadData) that lists missing, unknown and misshapen tensors.
/// @param prefix   tensors of the file with other names may be too many
/// @param left_out  so may these
void require_all_fit(const store::SafetensorsFile& file, const std::string& where,
                     const std::string& prefix, const std::vector<StoredTarget>& wanted,
                     const std::set<std::string>& left_out = {});

/// Whether no value is infinite or NaN; true for integers.
bool all_finite(const at::Tensor& values);
/// Throws Error(kNumeric) that names the first tensor of the file with a value that is infinite or
/// NaN. All of them must fit.
void require_finite(const store::SafetensorsFile& file, const std::string& where,
                    const std::vector<StoredTarget>& wanted);

/// Copies one tensor, of the same number of elements.
void copy_into(const store::TensorView& source, at::Tensor target);
/// Copies all of them, which must fit.
void copy_all(const store::SafetensorsFile& file, const std::vector<StoredTarget>& wanted);

}  // namespace stretto::runs
