#pragma once

#include <filesystem>
#include <string>

#include "families/language_model/folders/export_causal.h"
#include "interchange/stored_weights.h"
#include "models/causal_transformer_options.h"

namespace stretto::interchange {

/// Why CTranslate2 cannot express a language model; empty when it can. It has GPT-2's form,
/// Llama's, and what lies between them.
std::string ctranslate2_incompatibility(const models::CausalTransformerOptions& model);

/// Writes a model folder of CTranslate2, `model.bin`, `config.json` and `vocabulary.json`, with the
/// files of the tokenizer as `transformers` reads them. ctranslate2.Generator takes tokens.
///
/// @param model  `description.its` is not read
/// Throws Error(kUsage) with the reason where there is none or the folder is there already;
/// Error(kBadData) for tensors that are not those of the model.
void export_ctranslate2_causal(const ExportedCausal& model, StoredWeights weights,
                               const std::filesystem::path& folder);

}  // namespace stretto::interchange
