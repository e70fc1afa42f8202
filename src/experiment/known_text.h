#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/pairs/corpus.h"
#include "experiment/experiment.h"
#include "text/tokenizer.h"

namespace stretto::experiment {

/// Shares of `<unk>` above which training warns; above `data.max_unknown` it refuses.
inline constexpr double kWarnUnknown = 0.01;

/// Rates of `<unk>` and pieces a word of both sides of a corpus, in words, for log and report:
/// {"training text, unknown tokens", "source 0.31 %, target 0 %"}.
std::vector<std::pair<std::string, std::string>> known_text_facts(const std::string& name,
                                                                  const data::Corpus& corpus);

/// Looks at both sides of a text: a model can neither read nor write what is `<unk>`.
/// Throws Error(kBadData) above `data.max_unknown`, with what to do about these tokenizers.
/// @param name  "training text"
/// @param warn  whether a rate above kWarnUnknown is worth a line
void require_known(const std::string& name, const data::TextCounts& src,
                   const data::TextCounts& tgt, const text::TokenizerPair& tokenizers,
                   const Experiment& experiment, bool warn);

/// The tokens of a text, special ones included.
struct TokenCounts {
  int64_t tokens = 0;
  int64_t unknown = 0;  ///< those that stand for what the vocabulary cannot spell

  double unknown_rate() const {  ///< in [0, 1]; 0 without tokens
    return tokens == 0 ? 0 : static_cast<double>(unknown) / static_cast<double>(tokens);
  }
};

/// The same of a text of a task on encoded texts (experiment/text_sections.h).
void require_known(const std::string& name, const TokenCounts& counts, const Experiment& experiment,
                   bool warn);

}  // namespace stretto::experiment
