#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/speech/speech_set.h"
#include "experiment/preflight.h"
#include "text/target_options.h"
#include "text/tokenizer.h"

namespace stretto::experiment {

/// Whether a look before training can have the tokenizer of transcripts: one that is named or made
/// at once, of characters or words; with how.full any. If not, found.unread names it.
bool is_tokenizer_at_hand(const text::TargetOptions& options, const PreflightOptions& how,
                          Preflight& found);

/// That tokenizer, of the transcripts of the set unless it is named. It is kept in the folder of
/// caches where how.keeps says so. Throws as data::open_tokenizers() does.
std::shared_ptr<const text::Tokenizer> preflight_tokenizer(
    const text::TargetOptions& options, std::shared_ptr<const data::SpeechSet> training,
    uint64_t seed, const std::string& cache_dir, const PreflightOptions& how);

}  // namespace stretto::experiment
