#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "interchange/architectures/marian.h"
#include "interchange/import_options.h"
#include "interchange/tensors.h"
#include "store/weight_files.h"
#include "text/tokenizer.h"

namespace stretto::interchange {

/// A translation model of a folder of `transformers`, as a run has it.
struct ImportedSeq2Seq {
  Seq2SeqDescription description;
  experiment::Experiment experiment;          ///< without data
  std::map<std::string, std::string> assets;  ///< of the tokenizers
  text::TokenizerPair tokenizers;
  std::vector<store::TensorView> tensors;  ///< under the names of models::EncoderDecoder, F32
  std::vector<NamePair> names;             ///< of these tensors in the folder
  std::vector<std::string> missing;        ///< tensors of the model that the folder has not
  std::vector<std::string> left_out;       ///< tensors of the folder that are not in the model
  int64_t rows_left_out = 0;  ///< of each table of tokens, behind the last one of the tokenizer

  int64_t num_pieces() const { return tokenizers.tgt->size(); }
  std::string model_class() const { return std::string(marian_class(description.model).name); }

  std::shared_ptr<const store::WeightFiles> files;  ///< whose bytes the tensors are
  std::shared_ptr<TensorList> own;                  ///< and of others
};

/// Whether config.json of the folder names an architecture of translation. Throws Error(kUsage) for
/// a folder without config.json, Error(kBadData) for a broken one.
bool is_seq2seq_folder(const std::filesystem::path& folder);

/// config.json of a translation model. Throws Error(kBadData) that names the key.
Seq2SeqDescription read_seq2seq_config(std::string_view bytes, const std::string& where);

/// Reads a folder with config.json, weights, source.spm, target.spm and vocab.json. Writes nothing.
/// Throws as import_model(), and for special ids on which config.json and vocabulary do not agree.
ImportedSeq2Seq import_seq2seq(const std::filesystem::path& folder,
                               const ImportOptions& options = {});

}  // namespace stretto::interchange
