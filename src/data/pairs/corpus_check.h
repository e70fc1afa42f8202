#pragma once

#include <cstdint>
#include <string>

#include "data/pairs/corpus.h"
#include "data/pairs/data_options.h"
#include "data/pairs/parallel_input.h"
#include "text/tokenizer.h"

/// What open_corpus() would refuse in a text, found by the same code and without writing anything.
namespace stretto::data {

/// How far a look went.
struct ReadExtent {
  int64_t pairs = 0;   ///< that were read
  std::string unread;  ///< "a.en from line 1,234 on and 2 more inputs"; empty = all was read
};

/// What a text would become.
struct TextExtent {
  ReadExtent look;
  TextCounts src, tgt;  ///< of the pairs that the filters keep, as the corpus would have them
};

/// Opens every input of a split, then reads their lines.
/// @param still_time  asked before the first line and for each quarter of a megabyte
/// Throws as open_corpus() does for inputs that cannot be opened or are damaged, bad lines, missing
/// columns and unequal line counts; of a text without any line this look says nothing but the
/// count.
ReadExtent check_lines(const DataOptions& options, Split split, const StillTime& still_time);

/// Whether the filters leave a pair. Reads no further than the first that is kept, or all where
/// `data.too_long` or `data.invalid_utf8` make a pair an error.
/// Throws as open_corpus() does, for an empty corpus too.
ReadExtent check_filters(const DataOptions& options, Split split,
                         const text::TokenizerPair& tokenizers, const StillTime& still_time);

/// Tokenises the pairs and counts what comes of them, to the end or while there is time.
/// @param still_time  asked often enough for a tokenizer that is slow
/// Throws as open_corpus() does, but not for an empty corpus.
TextExtent count_pieces(const DataOptions& options, Split split,
                        const text::TokenizerPair& tokenizers, const StillTime& still_time);

}  // namespace stretto::data
