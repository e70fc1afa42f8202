#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "interchange/names.h"
#include "store/safetensors.h"

namespace stretto::interchange {

/// Tensors of which some have bytes of their own; the others belong to their source.
struct TensorList {
  std::vector<store::TensorView> tensors;
  std::deque<std::string> bytes;
};

/// By their modern names (modern_name()).
using TensorsByName = std::map<std::string, const store::TensorView*>;

/// A tensor of F64, F16 or BF16 as F32; one of F32 is its own view.
/// Throws Error(kBadData) for integers. @param where  file or folder, for messages
store::TensorView to_f32(const store::TensorView& tensor, std::deque<std::string>& bytes,
                         std::string_view where);

/// What was found of the names of a model.
struct JoinedTensors {
  TensorList list;                     ///< under our names, F32, in the order of the names
  std::vector<std::string> missing;    ///< of ours, those of which nothing was found
  std::vector<std::string> not_found;  ///< their names of the same
  std::vector<std::string> taken;      ///< their names that were read
};

/// Their tensors as ours: joined, transposed, without rows that nothing reads, in F32. A tensor
/// that cannot stay a view of its source is written once, from there to its place.
/// @param skipped_rows  of tensors with skips_rows
/// Throws Error(kBadData) that names tensors and shapes that cannot be joined or transposed, and a
/// tensor of which only a part is there.
JoinedTensors joined(const TensorsByName& theirs, const std::vector<NamePair>& names,
                     int64_t skipped_rows, std::string_view where);

/// Our tensors as theirs, the other way, as views of ours: what is no part of ours as it lies there
/// is made when it is written. Throws Error(kBadData) that names a missing tensor, or one of
/// another shape.
std::vector<store::StreamedTensor> separated(const std::vector<store::TensorView>& ours,
                                             const std::vector<NamePair>& names,
                                             int64_t skipped_rows, std::string_view where);

}  // namespace stretto::interchange
