#pragma once

#include <string>

#include "data/pairs/corpus.h"
#include "distributed/agreement.h"

namespace stretto::tasks {

/// A corpus as `distributed::require_agreement` compares it: contents, tokenizers and filters as
/// one hash, and the number of pairs; "none" for null.
distributed::Fact corpus_fact(const std::string& name, const data::Corpus* corpus);

}  // namespace stretto::tasks
