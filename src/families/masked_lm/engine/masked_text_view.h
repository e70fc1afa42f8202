#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/batch.h"
#include "families/masked_lm/engine/masked_model.h"
#include "report/sample.h"
#include "text/tokenizer.h"

/// Masked text as people read it.
namespace stretto::tasks {

/// A token by itself: "reading"; a piece that is no text, as it stands in the vocabulary.
std::string token_text(const text::Tokenizer& tokenizer, int64_t id);

/// A sequence of a masked batch, with chosen tokens in brackets: hidden ones as the mask token,
/// others, which are random or stayed, as they stand there: "Nine boys are [MASK] some [cats]".
std::string masked_text(const text::Tokenizer& tokenizer, const data::Batch& batch,
                        int64_t sequence);

/// The text, what the model took each chosen token for, and what stood there.
/// @param fillers  of the sequence's chosen tokens
report::RowsSample masked_sample(const text::Tokenizer& tokenizer, const data::Batch& batch,
                                 int64_t sequence, const std::vector<Filler>& fillers);

}  // namespace stretto::tasks
