#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "families/text/folders/architecture.h"
#include "store/safetensors.h"
#include "text/tokenizer_spec.h"

namespace stretto::interchange {

/// A model to be written.
struct ExportedModel {
  ModelDescription description;
  text::TokenizerSpec tokenizer;
  int64_t max_text_tokens = 0;             ///< longest text that it was trained with
  std::vector<store::TensorView> tensors;  ///< under the names of models::TextModel
};

/// The architecture that expresses the model exactly.
/// @param wanted  a model_type, or "auto": the one that is nearest of those that do
/// Throws Error(kUsage) with the reason of each architecture that does not.
const Architecture& choose_architecture(const ModelDescription& description, bool byte_bpe,
                                        const std::string& wanted);

/// Writes config.json, model.safetensors and the files of the tokenizer, which `transformers`
/// loads. A new folder appears at once and whole; one that is there must be empty.
/// Throws Error(kUsage) when it is not, Error(kBadData) for tensors that are not the model's,
/// Error(kIo).
void export_model(const ExportedModel& model, const Architecture& architecture,
                  const std::filesystem::path& folder);

}  // namespace stretto::interchange
