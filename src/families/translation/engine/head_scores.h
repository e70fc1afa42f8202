#pragma once

#include <string>
#include <vector>

#include "families/translation/engine/translation.h"
#include "train/task.h"

namespace stretto::tasks {

/// The scores of one of several decoders; without a name where there is only one.
struct HeadScore {
  std::string head;
  CorpusScore score;
  std::string set = {};  ///< "test" or "valid" where heads may differ in it
};

/// Whether their texts are of one kind.
bool share_set(const std::vector<HeadScore>& heads);

/// The heads together: loss and NLL per target token of all of them, BLEU the mean over the heads,
/// if they share a set. One head alone has its own numbers. @param heads  at least one; all
/// translated, or none did
CorpusScore overall(const std::vector<HeadScore>& heads);

/// loss, nll, ppl and, for translations, bleu of all; where heads have names, behind them nll, ppl
/// and bleu of each, as "de.nll".
std::vector<train::Score> scores_of(const std::vector<HeadScore>& heads);

}  // namespace stretto::tasks
