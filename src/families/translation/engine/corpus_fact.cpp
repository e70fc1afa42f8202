#include "families/translation/engine/corpus_fact.h"

#include "base/text.h"

namespace stretto::tasks {

distributed::Fact corpus_fact(const std::string& name, const data::Corpus* corpus) {
  if (corpus == nullptr) return {name, "none"};
  // The cache is named by a hash of all that shapes it; fractions of weights are drawn after it.
  return {name,
          corpus->cache_path().filename().string() + " of " + counted(corpus->num_pairs(), "pair")};
}

}  // namespace stretto::tasks
