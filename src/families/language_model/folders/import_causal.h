#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "families/language_model/folders/causal_class.h"
#include "interchange/import_options.h"
#include "interchange/imported_run.h"
#include "text/tokenizer.h"

namespace stretto::interchange {

/// A language model: tensors under the names of models::CausalModel, and the file tokenizer.json.
/// Its experiment is for the family to say.
struct ImportedCausal : ImportedRun {
  CausalDescription description;
  std::shared_ptr<const text::Tokenizer> tokenizer;
  /// The tokens of `eos_token_id` but for the tokenizer's own end of a text: of
  /// generation_config.json, else of config.json. Ids that the tokenizer does not have are left
  /// out.
  std::vector<std::string> end_tokens;
};

/// Reads a folder of GPT-2 or of Llama's form, but for the experiment. Writes nothing. Throws as
/// import_folder(), and Error(kBadData) for a tokenizer without a token that ends a text.
ImportedCausal import_causal(const std::filesystem::path& folder,
                             const ImportOptions& options = {});

}  // namespace stretto::interchange
