#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/pairs/pair_filter.h"
#include "data/pairs/parallel_input.h"
#include "data/sample_store.h"
#include "text/tokenizer.h"

namespace stretto::data {

struct CorpusPlan {
  std::vector<ParallelInput> inputs;
  PairRules rules;
  BadSampleRule bad_samples = {};
  bool keep_text = false;  ///< store the lines themselves too
  int64_t threads = 1;
};

/// The files of all inputs.
std::vector<std::string> files_of(const std::vector<ParallelInput>& inputs);

/// What the filters did, a text for each kind that occurred:
/// "too long 1,204: a.en:17, a.fr:60, b.en:2, …". A corpus from the cache names today's files.
std::vector<std::string> describe_filters(const CorpusPlan& plan, const FilterCounts& counts);

/// Error(kBadData) for a corpus of which the filters leave nothing: what they did, and where.
[[noreturn]] void throw_empty_corpus(const CorpusPlan& plan, const FilterCounts& counts);

/// Reads, filters and tokenises all inputs into the parts of a store
/// (data/pairs/stored_corpus.h).
///
/// One thread reads chunks of lines, `threads` others tokenise them, and results are written in the
/// order of the lines: the parts do not depend on the number of threads, and memory is a few
/// chunks. Bad pairs are left out or, up to ten of an input, one error.
///
/// @return the words of the head
/// Throws Error(kBadData) for unequal line counts (both counts and names), a bad line, or when no
/// pair is left; Error(kIo) when a file cannot be written.
std::vector<uint64_t> build_corpus(const CorpusPlan& plan, const text::TokenizerPair& tokenizers,
                                   SampleStoreWriter& store);

}  // namespace stretto::data
