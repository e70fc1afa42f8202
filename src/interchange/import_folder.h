#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "interchange/embed_recipe.h"
#include "interchange/import_options.h"
#include "interchange/tensors.h"
#include "store/weight_files.h"

namespace stretto::interchange {

/// A model of a folder of `transformers`, as a run has it: the result of every reader.
struct ImportedRun {
  std::string model_class;                    ///< "BertModel"
  experiment::Experiment experiment;          ///< without data
  std::map<std::string, std::string> assets;  ///< files of the run: tokenizers, names of labels
  int64_t num_pieces = 0;                     ///< of the tokenizer
  std::vector<store::TensorView> tensors;     ///< under the names of the run's network, F32
  std::vector<NamePair> names;                ///< of these tensors in the folder
  std::vector<std::string> missing;           ///< tensors of the model that the folder has not
  /// Tensors of the folder that are not in the model: those that nothing reads, and extra ones.
  std::vector<std::string> left_out;
  int64_t rows_left_out = 0;  ///< of each table of tokens, behind the last one of the tokenizer
  EmbedRecipe vectors;        ///< as the folder asks for them

  std::shared_ptr<const store::WeightFiles> files;  ///< whose bytes the tensors are
  std::shared_ptr<TensorList> own;                  ///< and of others
};

/// Reads a folder with config.json, weights and a tokenizer, by the reader of its `model_type`:
/// import_model(), import_seq2seq(). Writes nothing.
///
/// Throws Error(kUsage) for a folder that lacks one of them, Error(kBadData) that names file, key
/// or tensors: for whatever the readers refuse, for missing and extra tensors (all of them listed)
/// unless the options allow them, and for a vocabulary that does not fit the weights.
ImportedRun import_folder(const std::filesystem::path& folder, const ImportOptions& options = {});

}  // namespace stretto::interchange
