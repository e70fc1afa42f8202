#pragma once

#include <string>
#include <vector>

#include "models/option_conflicts.h"
#include "models/speech/attention_decoder_options.h"
#include "models/speech/conformer_options.h"

namespace stretto::models {

/// What keeps a Conformer from being built: sizes that are missing, heads that do not divide the
/// width, an even kernel. Empty for a sound model. No libtorch.
std::vector<OptionConflict> conflicts_of_kind(const ConformerOptions& options);

/// The same of an attention decoder. @param section  where its keys stand, "model.decoder"
std::vector<OptionConflict> decoder_conflicts(const AttentionDecoderOptions& options,
                                              const std::string& section);

}  // namespace stretto::models
