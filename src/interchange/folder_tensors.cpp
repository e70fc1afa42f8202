#include "interchange/folder_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "text/tokenizer_options.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;
using store::TensorView;

constexpr size_t kMostNamesShown = 20;

std::string listed(std::span<const std::string> names) {
  std::vector<std::string> shown;
  for (const auto& name : names.first(std::min(names.size(), kMostNamesShown))) {
    shown.push_back(printable(name));
  }
  const auto left = static_cast<int64_t>(names.size() - shown.size());
  if (left > 0) shown.push_back("and " + with_thousands(left) + " more");
  return join(shown, ", ");
}

/// The message about names that are refused.
struct RefusedNames {
  std::string what;                  ///< of the first of each kind
  std::vector<std::string> details;  ///< of each by itself
  bool is_whole = true;              ///< whether `what` has all of them

  void add(const std::string& kind, const std::vector<std::string>& names,
           const std::string& of_each) {
    if (names.empty()) return;
    what += (what.empty() ? "" : "; ") + kind + ": " + listed(names);
    is_whole = is_whole && names.size() <= kMostNamesShown;
    for (const auto& name : names) details.push_back("`" + name + "` " + of_each);
  }
};

// Models round up by far less.
bool is_of_another_tokenizer(int64_t rows, int64_t ids) {
  constexpr int64_t kMostSpare = 1024;
  const int64_t spare = rows - ids;
  return spare > kMostSpare && spare > rows / 20;
}

std::string ticked(const std::string& name) {
  return "`" + printable(name) + "`";
}

bool are_finite(std::string_view floats) {
  for (size_t at = 0; at + sizeof(float) <= floats.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, floats.data() + at, sizeof(float));
    if (!std::isfinite(value)) return false;
  }
  return true;
}

/// The bytes of each tensor of the folder that one of ours is joined from.
std::vector<size_t> bytes_of_parts(const NamePair& pair, const TensorView& whole) {
  const size_t count = pair.theirs.size();
  if (pair.part_rows.empty()) return std::vector<size_t>(count, whole.bytes.size() / count);
  const size_t row = whole.bytes.size() / static_cast<size_t>(whole.shape[0]);
  std::vector<size_t> sizes;
  for (const int64_t rows : pair.part_rows) sizes.push_back(row * static_cast<size_t>(rows));
  return sizes;
}

}  // namespace

std::string name_in_folder(const std::vector<NamePair>& names, const std::string& ours) {
  const auto found = std::ranges::find(names, ours, &NamePair::ours);
  if (found == names.end() || found->theirs.empty()) return ticked(ours);
  std::vector<std::string> theirs;
  for (const auto& name : found->theirs) theirs.push_back(ticked(name));
  return join(theirs, " + ") + " (" + ticked(ours) +
         (found->skips_rows ? ", without rows that nothing reads)" : ")");
}

std::vector<std::string> not_finite(const ReadTensors& read) {
  std::vector<std::string> found;
  for (const NamePair& pair : read.names) {
    const auto whole = std::ranges::find(read.ours, pair.ours, &TensorView::name);
    if (whole == read.ours.end()) continue;
    const auto sizes = bytes_of_parts(pair, *whole);
    size_t begin = 0;
    for (size_t i = 0; i < pair.theirs.size(); ++i) {
      const auto part = whole->bytes.substr(begin, sizes[i]);
      begin += sizes[i];
      if (are_finite(part)) continue;
      // Two tables of ours may come from one.
      const std::string& name = pair.theirs[i];
      if (std::ranges::find(found, name) == found.end()) found.push_back(name);
    }
  }
  return found;
}

std::string not_finite_text(const std::vector<std::string>& names) {
  const auto others = std::ssize(names) - 1;
  return "`" + printable(names.front()) + "`" +
         (others == 0 ? " has" : " and " + counted(others, "other tensor") + " have") +
         " values that are not finite";
}

TensorsByName by_modern_name(const std::vector<TensorView>& tensors, const fs::path& folder) {
  TensorsByName named;
  for (const TensorView& tensor : tensors) {
    if (named.emplace(modern_name(tensor.name), &tensor).second) continue;
    throw Error(ExitCode::kBadData,
                folder.string() + ": `" + printable(tensor.name) + "` is there under two names",
                "save the model again with a present version of transformers");
  }
  return named;
}

void require_equal_copies(const TensorsByName& theirs, const std::vector<NamePair>& copies,
                          const ReadTensors& read, const fs::path& folder,
                          std::set<std::string>& known) {
  for (const NamePair& copy : copies) {
    const auto found = theirs.find(copy.theirs[0]);
    if (found == theirs.end()) continue;
    known.insert(copy.theirs[0]);
    const auto original = std::ranges::find(read.ours, copy.ours, &TensorView::name);
    if (original == read.ours.end()) continue;
    const auto read_alike = joined({{copy.theirs[0], found->second}}, {copy}, 0, folder.string());
    if (read_alike.list.tensors[0].bytes == original->bytes) continue;
    throw Error(ExitCode::kBadData,
                folder.string() + ": " + ticked(copy.theirs[0]) + " is not " +
                    name_in_folder(read.names, copy.ours) + ", which config.json ties to it",
                "set tie_word_embeddings in config.json to false, where the model does not tie");
  }
}

void require_names(const NameMismatches& mismatches, const ImportOptions& options,
                   const fs::path& folder, const std::string& advice) {
  RefusedNames refused;
  if (!options.allow_missing) refused.add("missing", mismatches.not_found, "is missing");
  if (!options.ignore_extra)
    refused.add("not in the model", mismatches.extra, "is not in the model");
  if (refused.what.empty()) return;
  if (refused.is_whole) refused.details.clear();
  throw Error(ExitCode::kBadData,
              folder.string() + ": the weights are not those of a " + mismatches.model_class +
                  ": " + refused.what,
              "--allow-missing gives missing tensors their first weights, --ignore-extra leaves "
              "others out" +
                  advice,
              std::move(refused.details));
}

int64_t fit_rows(TensorView& table, const VocabularySize& size, TensorList& own,
                 const fs::path& folder) {
  const int64_t rows = table.shape.empty() ? 0 : table.shape[0];
  const std::string name = size.table.empty() ? ticked(table.name) : size.table;
  if (rows < size.ids || rows != size.stated) {
    throw Error(ExitCode::kBadData,
                folder.string() + ": the vocabulary does not fit the weights: the tokenizer has " +
                    counted(size.ids, "id") + ", config.json says " + with_thousands(size.stated) +
                    ", and " + name + " has " + counted(rows, "row"),
                "put the tokenizer of these weights into the folder");
  }
  if (!size.ignores_extra && is_of_another_tokenizer(rows, size.ids)) {
    throw Error(
        ExitCode::kBadData,
        folder.string() + ": the vocabulary does not fit the weights: the tokenizer has " +
            counted(size.ids, "id") + ", and " + name + " has " + counted(rows, "row"),
        "put the tokenizer of these weights into the folder; --ignore-extra leaves out rows "
        "without an id");
  }
  const size_t row = table.bytes.size() / static_cast<size_t>(rows);
  table.shape[0] = text::table_rows(size.ids, size.multiple);
  std::string bytes(table.bytes.substr(0, row * static_cast<size_t>(size.ids)));
  bytes.resize(row * static_cast<size_t>(table.shape[0]), '\0');
  table.bytes = own.bytes.emplace_back(std::move(bytes));
  return rows - size.ids;
}

std::vector<TensorView> without_spare_rows(
    std::vector<TensorView> tensors, int64_t ids,
    const std::function<bool(const std::string& name)>& is_table) {
  for (TensorView& tensor : tensors) {
    if (!is_table(tensor.name) || tensor.shape.empty() || tensor.shape[0] <= ids) continue;
    const size_t row = tensor.bytes.size() / static_cast<size_t>(tensor.shape[0]);
    tensor.shape[0] = ids;
    tensor.bytes = tensor.bytes.substr(0, row * static_cast<size_t>(ids));
  }
  return tensors;
}

void require_all_written(const std::vector<TensorView>& tensors,
                         const std::vector<NamePair>& names) {
  for (const TensorView& tensor : tensors) {
    if (std::ranges::find(names, tensor.name, &NamePair::ours) != names.end()) continue;
    throw Error(
        ExitCode::kBadData,
        "the checkpoint has `" + printable(tensor.name) + "`, which the model does not have",
        "the checkpoint belongs to another configuration");
  }
}

}  // namespace stretto::interchange
