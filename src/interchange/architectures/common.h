#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "interchange/architecture.h"
#include "nn/adapter_options.h"

namespace stretto::interchange {

/// What BERT's and RoBERTa's config.json have in common. @param unread_positions  first rows of the
/// table of positions that nothing reads
ModelDescription read_bert_config(const ConfigReader& config, int64_t unread_positions);
void write_bert_config(const ModelDescription& description, int64_t unread_positions,
                       nlohmann::ordered_json& config);

/// Refuses a number of heads that does not divide the width, by both keys of config.json.
void require_whole_heads(const ConfigReader& config, const std::string& heads_key, int64_t heads,
                         const std::string& width_key, int64_t width);

/// What no architecture here can express: pre-norm, RMSNorm, rotary positions, gated units. Empty
/// when the model has none of it.
std::string common_incompatibility(const ModelDescription& description);

/// Why a model with adapters, which are on, has no class at all.
std::string adapter_incompatibility(const nn::AdapterOptions& adapter);

}  // namespace stretto::interchange
