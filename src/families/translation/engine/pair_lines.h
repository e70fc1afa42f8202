#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "data/pairs/corpus.h"
#include "data/pairs/data_options.h"
#include "text/tokenizer.h"

namespace stretto::tasks {

/// A file with a line for each pair of a test corpus, in step with the lines of its text: where the
/// corpus left a pair out, because a side has no tokens, there is `missing`.
///
/// @param line_of  the line of pair `sample` of the corpus, without its line end
/// Reads the text once more where pairs were left out. Throws as data::open_corpus() does.
std::string pair_lines(const data::Corpus& corpus, const data::DataOptions& options,
                       const text::TokenizerPair& tokenizers,
                       const std::function<std::string(int64_t sample)>& line_of,
                       const std::string& missing);

}  // namespace stretto::tasks
