#include "runs/tensors_fit.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"

namespace stretto::runs {
namespace {

constexpr size_t kMaxListedMismatches = 3;

// The message about a tensor, or about a pattern of several.
std::string mismatch_text(const std::string& name, const std::string& what) {
  return "`" + name + "` " + what;
}

/// Mismatches that are listed together.
struct MismatchEntry {
  std::vector<std::string> name;  ///< its parts; "*" where the tensors have different numbers
  std::string what;               ///< of all of them
  int64_t count = 1;

  std::string text() const {
    const std::string one = mismatch_text(join(name, "."), what);
    return count == 1 ? one : one + " (" + counted(count, "tensor") + ")";
  }
};

bool is_layer_number(const std::string& part) {
  return !part.empty() &&
         std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// In the order of the first mismatch of each.
std::vector<MismatchEntry> grouped_mismatches(const std::vector<TensorMismatch>& mismatches) {
  std::vector<MismatchEntry> entries;
  std::map<std::pair<std::vector<std::string>, std::string>, size_t> places;
  for (const TensorMismatch& problem : mismatches) {
    MismatchEntry found{.name = split(problem.name, '.'), .what = problem.what};
    auto pattern = found.name;
    for (std::string& part : pattern) {
      if (is_layer_number(part)) part = "*";
    }
    const auto [place, is_new] = places.try_emplace(std::pair(pattern, found.what), entries.size());
    if (is_new) {
      entries.push_back(std::move(found));
      continue;
    }
    MismatchEntry& entry = entries[place->second];
    ++entry.count;
    for (size_t i = 0; i < pattern.size(); ++i) {
      if (found.name[i] != entry.name[i]) entry.name[i] = "*";
    }
  }
  return entries;
}

}  // namespace

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  }
  return text + "]";
}

std::optional<TensorMismatch> shape_mismatch(const store::TensorView* found,
                                             const std::string& name,
                                             const std::vector<int64_t>& shape) {
  if (found == nullptr) return TensorMismatch{name, "is missing"};
  if (found->shape == shape) return std::nullopt;
  return TensorMismatch{
      name, "is " + shape_text(found->shape) + ", the model wants " + shape_text(shape)};
}

TensorMismatch unexpected_tensor(const std::string& name) {
  return {name, "is not in the model"};
}

Error mismatch_error(const std::string& what, const std::vector<TensorMismatch>& mismatches,
                     std::string advice) {
  std::vector<std::string> shown, details;
  auto left = static_cast<int64_t>(mismatches.size());
  for (const MismatchEntry& entry : grouped_mismatches(mismatches)) {
    if (shown.size() == kMaxListedMismatches) break;
    shown.push_back(entry.text());
    left -= entry.count;
  }
  if (left > 0) {
    shown.push_back("and " + counted(left, "tensor") + " more");
    for (const TensorMismatch& problem : mismatches) {
      details.push_back(mismatch_text(problem.name, problem.what));
    }
  }
  return Error(ExitCode::kBadData, what + ": " + join(shown, "; "), std::move(advice),
               std::move(details));
}

void require_fit(const std::vector<TensorMismatch>& mismatches, const std::string& where) {
  if (mismatches.empty()) return;
  throw mismatch_error(
      where + ": the checkpoint does not fit this model", mismatches,
      "the checkpoint has another architecture or vocabulary: use the configuration it was trained "
      "with, or another --run folder");
}

}  // namespace stretto::runs
