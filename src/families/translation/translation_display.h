#pragma once

#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/score_spec.h"
#include "families/text/score_keys.h"
#include "losses/cross_entropy_options.h"
#include "report/display.h"

namespace stretto::tasks {

/// Keys of scores that translation alone has; `kl` is of training with R-Drop.
namespace score_key {
inline constexpr const char *kBleu = "bleu", *kKl = "kl";
}  // namespace score_key

/// A decoder of several, by name.
struct ScoredHead {
  std::string name;
  bool ranks = true;  ///< whether it has validation text
};

/// Those of model.heads; none where the model has one decoder.
std::vector<ScoredHead> scored_heads(const experiment::Experiment& experiment);

/// The numbers of translation.
/// @param heads  several decoders, whose numbers stand beside those of all
std::vector<experiment::ScoreSpec> translation_scores(const losses::CrossEntropyOptions& loss,
                                                      const std::vector<ScoredHead>& heads = {});

/// How numbers and samples of translation are printed and drawn; needs no libtorch, since `stretto
/// report` draws a page without it.
inline report::Display translation_display(const losses::CrossEntropyOptions& loss,
                                           const std::vector<ScoredHead>& heads = {}) {
  const std::string beside = loss.training_words();
  report::Display display;
  display.numbers = experiment::styles_of(translation_scores(loss, heads));
  display.rate = {.key = "tokens_per_second",
                  .unit = "tokens",
                  .short_unit = "tok",
                  .remark = "real target tokens",
                  .batch = "target_tokens"};
  display.loss_unit = {.name = "target tokens", .count = "target_tokens"};
  if (!beside.empty()) {
    display.note = "The loss is what training minimises, with " + beside +
                   ". NLL and perplexity are without it: perplexity is exp(NLL), not exp(loss).";
  }
  if (loss.has_r_drop()) {
    display.note +=
        " R-Drop is in the loss of training alone. There NLL is the mean of two passes, and KL is "
        "the mean of their divergences in both directions, per target token.";
  }
  display.samples = "Sample translations";
  display.text_pair = {.input = "Source",
                       .output = "Translation",
                       .reference = "Reference",
                       .picture = "attention, translation by source"};
  return display;
}

}  // namespace stretto::tasks
