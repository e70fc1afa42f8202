#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "store/quantised.h"
#include "store/safetensors.h"

/// Packed tensors in a safetensors file.
///
/// A file has three tensors for a packed NAME:
///
///     NAME.codes   U8 [rows, row bytes]  q + 2^(bits - 1), the first code in the lowest bits; the
///                                        bits behind a row's last code are 0
///     NAME.scales  F16 [rows, groups]    [rows, 1] for a scale a row, [1, 1] for one of a tensor
///     NAME.zeros   U8, as the scales     zero + 2^(bits - 1); unless symmetric
///
/// and, under `stretto.quantised` in its metadata, the format and the shape of each.
namespace stretto::store {

/// The tensors of a packed one in a file. The view's bytes must live on.
std::vector<TensorView> stored_tensors(const std::string& name, const QuantisedView& packed);

/// The key of a file's metadata under which its packed tensors are described, and the description.
inline constexpr std::string_view kQuantisedKey = "stretto.quantised";
struct QuantisedShape {
  QuantFormat format;
  std::vector<int64_t> shape;
};
std::string quantised_metadata(const std::map<std::string, QuantisedShape>& tensors);

/// Whether a file says that it has packed tensors.
bool is_packed(const SafetensorsFile& file);

/// The packed tensors of a file, checked: each has its codes, scales and zeros in the right type
/// and shape, finite scales, codes and zeros that the format has, and no tensor beside them has the
/// name of a part.
class QuantisedTensors {
 public:
  /// Looks at `file`, whose bytes must live on. Empty for a file that has none.
  /// Throws Error(kBadData) that names file and tensor.
  QuantisedTensors(const SafetensorsFile& file, std::string_view where);

  bool empty() const { return tensors_.empty(); }
  /// By name.
  const std::map<std::string, QuantisedView, std::less<>>& tensors() const { return tensors_; }
  const QuantisedView* find(std::string_view name) const;  ///< null where it is not packed
  /// Whether a tensor of the file is a part of a packed one, as `NAME.codes` is.
  bool has_part(std::string_view stored) const { return parts_.contains(stored); }

 private:
  std::map<std::string, QuantisedView, std::less<>> tensors_;
  std::set<std::string, std::less<>> parts_;  ///< names in the file
};

/// The names of a file's tensors, a packed one by its own. Throws Error(kBadData) as
/// QuantisedTensors does.
std::vector<std::string> names_of_tensors(const SafetensorsFile& file, std::string_view where);

}  // namespace stretto::store
