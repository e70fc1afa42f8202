#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "families/text/folders/model_config.h"
#include "interchange/import_options.h"
#include "interchange/imported_run.h"
#include "text/tokenizer.h"

namespace stretto::interchange {

/// What the other files of a folder say of its texts.
struct FolderTexts {
  bool byte_bpe = false;   ///< else WordPiece
  int64_t max_tokens = 0;  ///< longest text that the model was made for; 0 = nothing says it
};

/// An encoder of text: tensors under the names of models::TextModel. Its files are tokenizer.json,
/// and labels.json of labels. Its experiment is for the family to say (TextFolders).
struct ImportedModel : ImportedRun {
  FolderTexts texts;
  ModelConfig config;
  std::shared_ptr<const text::Tokenizer> tokenizer;
};

/// Reads a folder of BERT, RoBERTa or DistilBERT, but for the experiment. Throws as
/// import_folder().
ImportedModel import_model(const std::filesystem::path& folder, const ImportOptions& options = {});

}  // namespace stretto::interchange
