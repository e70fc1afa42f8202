#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "families/language_model/folders/causal_class.h"
#include "store/safetensors.h"
#include "text/tokenizer_spec.h"

namespace stretto::interchange {

/// A language model to be written.
struct ExportedCausal {
  CausalDescription description;  ///< with the ids of the tokenizer as vocab_size
  text::TokenizerSpec tokenizer;
  std::vector<store::TensorView> tensors;  ///< under the names of models::CausalModel
  /// That end a text beside the tokenizer's own end. One that it does not have is left out.
  std::vector<std::string> end_tokens = {};
};

/// Writes config.json, generation_config.json, model.safetensors and the files of the tokenizer,
/// which `transformers` loads. A new folder appears at once and whole; one that is there must be
/// empty.
/// Throws Error(kUsage) when it is not, Error(kBadData) for tensors that are not the model's,
/// Error(kIo).
void export_causal(const ExportedCausal& model, const std::filesystem::path& folder);

}  // namespace stretto::interchange
