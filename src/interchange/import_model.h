#pragma once

#include <filesystem>
#include <memory>

#include "interchange/import_folder.h"
#include "interchange/import_options.h"
#include "interchange/model_config.h"
#include "text/tokenizer.h"

namespace stretto::interchange {

/// An encoder of text: tensors under the names of models::TextModel. Its files are tokenizer.json,
/// and labels.json of labels.
struct ImportedModel : ImportedRun {
  ModelConfig config;
  std::shared_ptr<const text::Tokenizer> tokenizer;
};

/// Reads a folder of BERT, RoBERTa or DistilBERT. Throws as import_folder().
ImportedModel import_model(const std::filesystem::path& folder, const ImportOptions& options = {});

}  // namespace stretto::interchange
