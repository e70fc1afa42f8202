#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Names of tensors in folders of Hugging Face's `transformers`, and here.
namespace stretto::interchange {

/// Which tensors a row of a table stands for.
enum class Parts : uint8_t {
  kWeightAndBias,  ///< the two tensors of a layer: `.weight` and `.bias` end both names
  kWhole,          ///< the one tensor that is named
};

/// A row of a table of names.
struct NameRow {
  /// `*` is the number of a layer. `{query,key,value}`: three tensors, which here are one, one
  /// below the other.
  std::string_view theirs;
  std::string_view ours;
  Parts parts = Parts::kWeightAndBias;
  /// Their first rows belong to positions before the first token, which nothing reads (RoBERTa):
  /// as many as the id of padding and one more. Left out here, and zeros there.
  bool skips_rows = false;
  /// Their matrix is the transposed one (GPT-2's Conv1D, [in, out]); a bias is as it is. Several
  /// that are joined are transposed first. Not together with skips_rows.
  bool transposed = false;
};

/// A tensor here, and the tensors that it is joined from.
struct NamePair {
  std::vector<std::string> theirs;
  std::string ours;
  bool skips_rows = false;
  bool transposed = false;
  /// Rows of each of theirs in ours, where they are not equal parts. Not together with transposed.
  std::vector<int64_t> part_rows = {};

  bool operator==(const NamePair&) const = default;
};

/// The names of a table for a model of so many layers. @param prefix  left out at the beginning of
/// their names: models without a head have none
std::vector<NamePair> expand(std::span<const NameRow> rows, int64_t num_layers,
                             std::string_view prefix = "");

/// A name as `transformers` spells it today: `LayerNorm.gamma` and `beta` were its weight and bias.
std::string modern_name(std::string_view name);

}  // namespace stretto::interchange
