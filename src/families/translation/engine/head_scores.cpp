#include "families/translation/engine/head_scores.h"

#include <algorithm>

#include "families/text/engine/score_values.h"
#include "families/translation/translation_display.h"

namespace stretto::tasks {
namespace {

// Without the loss, which of a head is nobody's measure.
void add_scores(const std::string& prefix, const CorpusScore& score,
                std::vector<train::Score>& scores) {
  add_nll_scores(score.nll, scores, prefix);
  if (score.bleu >= 0) scores.push_back({.name = prefix + score_key::kBleu, .value = score.bleu});
}

}  // namespace

bool share_set(const std::vector<HeadScore>& heads) {
  return std::ranges::all_of(heads,
                             [&](const HeadScore& one) { return one.set == heads.front().set; });
}

CorpusScore overall(const std::vector<HeadScore>& heads) {
  if (heads.size() == 1) return heads.front().score;
  CorpusScore all;
  double bleu = 0;
  bool translated = true;
  for (const auto& [name, score, set] : heads) {
    const auto tokens = static_cast<double>(score.target_tokens);
    all.loss += score.loss * tokens;
    all.nll += score.nll * tokens;
    all.target_tokens += score.target_tokens;
    bleu += score.bleu;
    translated = translated && score.bleu >= 0;
  }
  all.loss /= static_cast<double>(all.target_tokens);
  all.nll /= static_cast<double>(all.target_tokens);
  if (translated && share_set(heads)) {
    all.bleu = bleu / static_cast<double>(heads.size());
    all.bleu_signature = heads.front().score.bleu_signature;
  }
  return all;
}

std::vector<train::Score> scores_of(const std::vector<HeadScore>& heads) {
  const CorpusScore all = overall(heads);
  std::vector<train::Score> scores{{.name = score_key::kLoss, .value = all.loss}};
  add_scores("", all, scores);
  for (const auto& [name, score, set] : heads) {
    if (!name.empty()) add_scores(name + ".", score, scores);
  }
  return scores;
}

}  // namespace stretto::tasks
