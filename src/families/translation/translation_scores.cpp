#include <algorithm>

#include "families/translation/heads.h"
#include "families/translation/translation_display.h"
#include "families/translation/translation_facts.h"

namespace stretto::tasks {
namespace {

using experiment::ScoreSpec;
using report::Axis;

std::vector<ScoreSpec> scores_of_all(const losses::CrossEntropyOptions& loss, bool has_heads) {
  const std::string smoothing = loss.smoothing_words();
  const bool smoothed = !smoothing.empty();
  return {
      {.style = {.name = score_key::kLoss,
                 .remark = smoothed ? "with " + smoothing : "",
                 .progress = smoothed ? "smoothed loss" : "loss",
                 .chart = "Loss",
                 .tile = "Loss",
                 .column = smoothed ? "Smoothed loss" : "Loss"},
       .ranks = false},  // `best` goes by nll, which is without smoothing
      nll_score(),
      ppl_score(),
      {.style = {.name = score_key::kBleu,
                 .label = "BLEU",
                 .remark = has_heads ? "mean over heads" : "",
                 .decimals = 1,
                 .chart = "BLEU",
                 .axis = Axis::kFromZero,
                 .tile = "BLEU",
                 .column = "BLEU",
                 .column_decimals = 2,
                 .higher_is_better = true,
                 .of_validation = true},
       .also_called = {"sacrebleu", "bleu_detok", "eval_bleu"},
       .title = "BLEU",
       .noise = experiment::noise_of_bleu()},
  };
}

// One chart has the curves of all heads.
std::vector<ScoreSpec> scores_of_head(const ScoredHead& head) {
  const std::string before = head.name + ".";
  return {
      {.style = {.name = before + score_key::kLoss, .chart = "Losses of heads, weighted"},
       .ranks = false},
      {.style = {.name = before + score_key::kNll, .chart = "NLL of heads"}, .ranks = head.ranks},
      {.style = {.name = before + score_key::kPpl,
                 .decimals = 2,
                 .exponential_of = before + score_key::kNll},
       .ranks = false},
      {.style = {.name = before + score_key::kBleu,
                 .decimals = 1,
                 .chart = "BLEU of heads",
                 .axis = Axis::kFromZero,
                 .column = head.name + " BLEU",
                 .column_decimals = 2,
                 .higher_is_better = true,
                 .of_validation = true},
       .ranks = head.ranks,
       .noise = experiment::noise_of_bleu()},
  };
}

}  // namespace

std::vector<ScoreSpec> translation_scores(const losses::CrossEntropyOptions& loss,
                                          const std::vector<ScoredHead>& heads) {
  auto scores = scores_of_all(loss, !heads.empty());
  for (const auto& head : heads) {
    const auto own = scores_of_head(head);
    scores.insert(scores.end(), own.begin(), own.end());
  }
  if (loss.has_r_drop()) {
    scores.push_back({.style = {.name = score_key::kKl,
                                .label = "KL",
                                .remark = "distance of the two passes",
                                .chart = "KL divergence of the two passes",
                                .axis = Axis::kFromZero},
                      .ranks = false});
  }
  return scores;
}

std::vector<ScoredHead> scored_heads(const experiment::Experiment& experiment) {
  std::vector<ScoredHead> scored;
  const auto heads = experiment::heads_of(experiment);
  for (const auto& name : experiment::head_names(experiment)) {
    const auto head = std::ranges::find(heads, name, &experiment::Head::name);
    scored.push_back({name, head != heads.end() && head->has_validation()});
  }
  return scored;
}

}  // namespace stretto::tasks
