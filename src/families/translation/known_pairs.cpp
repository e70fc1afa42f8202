#include "families/translation/known_pairs.h"

#include "base/text.h"
#include "experiment/task_rules.h"
#include "families/text/known_text.h"
#include "families/translation/translation_options.h"

namespace stretto::experiment {
namespace {

// What helps depends on where the tokenizers come from.
std::string remedy(const text::TokenizerPair& tokenizers, const Experiment& experiment) {
  const bool trained = !takes_tokenizer_of_other_run(experiment) &&
                       !text::names_tokenizer(translation_of(experiment).tokenizer);
  if (trained) {
    return "raise tokenizer.character_coverage (1 gives every character a piece), or look for text "
           "in another script";
  }
  const bool vocabulary = tokenizers.assets.contains("src.vocab");
  return std::string(vocabulary
                         ? "split the text as the vocabulary is split (sub-words, case, "
                           "punctuation), or give the vocabulary that belongs to it"
                         : "give the model that was made for this text, or leave tokenizer.model "
                           "and train.init_from out to train one") +
         "; look whether source and target are swapped";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> known_text_facts(const std::string& name,
                                                                  const data::Corpus& corpus) {
  const auto& src = corpus.src_counts();
  const auto& tgt = corpus.tgt_counts();
  return {{name + ", unknown tokens", "source " + percent_text(src.unknown_rate()) + ", target " +
                                          percent_text(tgt.unknown_rate())},
          {name + ", pieces a word", "source " + fixed(src.pieces_per_word(), 2) + ", target " +
                                         fixed(tgt.pieces_per_word(), 2)}};
}

void require_known(const std::string& name, const data::TextCounts& src,
                   const data::TextCounts& tgt, const text::TokenizerPair& tokenizers,
                   const Experiment& experiment, bool warn) {
  for (const bool source : {true, false}) {
    const double rate = (source ? src : tgt).unknown_rate();
    require_known_share({.rate = rate,
                         .most = translation_of(experiment).data.max_unknown,
                         .fact = name + ": " + percent_text(rate) + " of the " +
                                 (source ? "source" : "target") + "'s tokens are `<unk>`",
                         .effect = "which the model can neither read nor write"},
                        warn, [&] { return remedy(tokenizers, experiment); });
  }
}

}  // namespace stretto::experiment
