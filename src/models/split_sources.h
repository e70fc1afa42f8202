#pragma once

#include "data/batch.h"
#include "nn/packed_rows.h"

namespace stretto::models {

/// The rows of two sources that share a column, `ids(first) eos ids(second) eos` a sequence.
struct SplitSources {
  nn::PackedRows first, second;
};

/// Cuts each sequence behind its first end-of-sentence. Positions of both parts begin at 0. Row
/// keys and dropped words are those of the column: no two rows of a sample have one key, and masks
/// do not depend on how a batch is cut.
///
/// @param rows    of `tokens`, once (pack) or twice (pack_twice)
/// @param eos     end-of-sentence of the source's tokenizer
/// Throws c10::Error where a sequence has one part only.
SplitSources split_sources(const nn::PackedRows& rows, const data::PackedTokens& tokens,
                           int64_t eos);

}  // namespace stretto::models
