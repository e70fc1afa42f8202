#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "families/language_model/folders/export_causal.h"
#include "interchange/stored_weights.h"
#include "models/causal_transformer_options.h"

namespace stretto::interchange {

/// Why there is no architecture of GGUF for a language model; empty when there is.
std::string gguf_incompatibility(const models::CausalTransformerOptions& model);

/// The architecture that a model is written as: "llama", "qwen2" (biases of queries, keys and
/// values alone) or "qwen3" (norms over the heads of queries and keys). For a model without a
/// gguf_incompatibility().
std::string_view gguf_architecture(const models::CausalTransformerOptions& model);

/// Writes one file that llama.cpp loads, with the tokenizer in it.
///
/// @param model    `description.its` is not read
/// @param weights  of matrices, the tables of tokens too: F32, F16 or Q8_0. Vectors are F32
/// Throws Error(kUsage) with the reason where model or tokenizer cannot be expressed, and where
/// rows do not fill the blocks of Q8_0; Error(kBadData) for tensors that are not those of the
/// model.
void export_gguf_causal(const ExportedCausal& model, StoredWeights weights,
                        const std::filesystem::path& file);

}  // namespace stretto::interchange
