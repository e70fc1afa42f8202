#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "interchange/embed_recipe.h"
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
  std::vector<std::string> notes = {};  ///< for whoever imports it, a line each

  std::shared_ptr<const store::WeightFiles> files;  ///< whose bytes the tensors are
  std::shared_ptr<TensorList> own;                  ///< and of others
};

}  // namespace stretto::interchange
