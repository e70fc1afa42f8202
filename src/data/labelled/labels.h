#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace stretto::data {

/// The labels that a classifier knows; the number of a label is its place in their list.
class Labels {
 public:
  /// In the order given. Throws Error(kUsage) for an empty list, an empty name, and one that occurs
  /// twice.
  static Labels given(std::vector<std::string> names);
  /// Those that occur, each once: in ascending order of numbers if all of them are whole numbers,
  /// otherwise of bytes. Throws Error(kUsage) for none, and for an empty name.
  static Labels sorted(std::vector<std::string> occurring);

  int64_t size() const { return static_cast<int64_t>(names_.size()); }
  const std::vector<std::string>& names() const { return names_; }
  const std::string& name(int64_t label) const { return names_[static_cast<size_t>(label)]; }

  std::optional<int64_t> find(std::string_view name) const;
  /// @param place  "dev.tsv:17", for the message
  /// Throws Error(kBadData) for an unknown label, with those that are known.
  int64_t number_of(std::string_view name, std::string_view place) const;

 private:
  explicit Labels(std::vector<std::string> names);

  std::vector<std::string> names_;
  std::unordered_map<std::string, int64_t> numbers_;
};

/// Whether a label has no tab and no line end. `infer` and `eval --predictions` write labels one a
/// line, with tabs between what stands beside them.
bool is_one_line(std::string_view label);

/// Labels that may be meant as one: the same number in two forms (`1`, `1.0`, `01`), or names that
/// differ in case or white space alone. "`1`, `1.0` and `01` are one number": a text for each.
std::vector<std::string> labels_alike(std::span<const std::string> names);
/// What helps against them.
inline constexpr const char* kLabelsAlikeAdvice =
    "each is a label of its own; write it in one form in all files if one is meant";

/// Throws Error(kUsage) unless there are as many weights (`loss.class_weight_list`) as labels.
void require_weight_of_each(const Labels& labels, size_t num_weights);

}  // namespace stretto::data
