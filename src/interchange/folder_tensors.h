#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "interchange/import_options.h"
#include "interchange/tensors.h"

/// Tensors of a folder against those of the model that its config.json describes.
namespace stretto::interchange {

/// By modern names. Throws Error(kBadData) for two old and new names of one tensor.
TensorsByName by_modern_name(const std::vector<store::TensorView>& tensors,
                             const std::filesystem::path& folder);

/// What was read of a folder: tensors under our names, and which of the folder's they are.
struct ReadTensors {
  const std::vector<store::TensorView>& ours;
  const std::vector<NamePair>& names;
};

/// A tensor of ours by the folder's names, for messages:
/// "`classifier.bias` (`head.output.bias`)". Ours alone where `names` does not have it.
std::string name_in_folder(const std::vector<NamePair>& names, const std::string& ours);

/// The folder's names of tensors that have values which are infinite or NaN, in the order of
/// `names`. Looked at is what was read: all tensors are F32.
std::vector<std::string> not_finite(const ReadTensors& read);
/// Of such names, one at least: "`a` and 2 other tensors have values that are not finite".
std::string not_finite_text(const std::vector<std::string>& names);

/// Tensors that a folder may have a second time, because the model ties them: such a copy must be
/// equal to the tensor of ours that it repeats. Adds the copies that are there to `known`.
/// Throws Error(kBadData): a copy that differs is of a model that does not tie.
void require_equal_copies(const TensorsByName& theirs, const std::vector<NamePair>& copies,
                          const ReadTensors& read, const std::filesystem::path& folder,
                          std::set<std::string>& known);

/// Names that do not fit.
struct NameMismatches {
  std::string model_class;             ///< for messages
  std::vector<std::string> not_found;  ///< of the model, in the folder's spelling
  std::vector<std::string> extra;      ///< of the folder
};

/// Throws Error(kBadData) that lists them, unless the options allow them: the first of each kind,
/// and where there are more, all of them as its details. @param advice  also given
void require_names(const NameMismatches& mismatches, const ImportOptions& options,
                   const std::filesystem::path& folder, const std::string& advice);

/// How many ids a tokenizer has, and what config.json says of them.
struct VocabularySize {
  int64_t ids = 0, stated = 0;
  int64_t multiple = 1;        ///< of which the rows of a run's table are
  bool ignores_extra = false;  ///< rows without an id may be many
  std::string table = {};      ///< which it is, for messages; empty = by its own name
};

/// Gives a table [V, …] the rows of the ids, and rows of zeros up to a round number, as every run
/// has them. Returns the number of rows that are left out.
/// Throws Error(kBadData) for fewer rows than ids, for rows that config.json does not state, and
/// for so many without an id that the tokenizer is probably another model's.
int64_t fit_rows(store::TensorView& table, const VocabularySize& size, TensorList& own,
                 const std::filesystem::path& folder);

/// The other way: tables [V, …] of a checkpoint without the rows that round them up.
/// @param is_table  by name, whether a tensor is such a table
std::vector<store::TensorView> without_spare_rows(
    std::vector<store::TensorView> tensors, int64_t ids,
    const std::function<bool(const std::string& name)>& is_table);

/// Throws Error(kBadData) for a tensor of a checkpoint that has no name in the folder to be
/// written.
void require_all_written(const std::vector<store::TensorView>& tensors,
                         const std::vector<NamePair>& names);

}  // namespace stretto::interchange
