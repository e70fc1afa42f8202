#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/pairs/corpus.h"
#include "experiment/experiment.h"
#include "text/tokenizer.h"

namespace stretto::experiment {

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

}  // namespace stretto::experiment
