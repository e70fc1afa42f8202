#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "families/text/folders/architecture.h"

namespace stretto::interchange {

/// What BERT's and RoBERTa's config.json have in common. @param unread_positions  first rows of the
/// table of positions that nothing reads
ModelDescription read_bert_config(const ConfigReader& config, int64_t unread_positions);
void write_bert_config(const ModelDescription& description, int64_t unread_positions,
                       nlohmann::ordered_json& config);

/// What no architecture here can express: pre-norm, RMSNorm, rotary positions, gated units. Empty
/// when the model has none of it.
std::string common_incompatibility(const ModelDescription& description);

}  // namespace stretto::interchange
