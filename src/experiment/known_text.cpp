#include "experiment/known_text.h"

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "config/schema.h"
#include "experiment/task_rules.h"
#include "experiment/text_sections.h"

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

std::string remedy_of_one(const Experiment& experiment) {
  const bool named = !text_sections(experiment).tokenizer->model.empty();
  if (!named && !takes_tokenizer_of_other_run(experiment)) {
    return "raise tokenizer.vocab_size, or use tokenizer.type = \"byte_bpe\"";
  }
  return "give the tokenizer that was made for this text, or leave tokenizer.model and "
         "train.init_from out to train one";
}

/// A share of tokens that are unknown, and what is said of it.
struct UnknownShare {
  double rate, most;   ///< `most`: data.max_unknown
  std::string fact;    ///< "training text: 3 % of the tokens are unknown"
  std::string effect;  ///< on the model, in a warning
};

/// @param remedy  asked for the advice only where something is said
template <class Remedy>
void judge(const UnknownShare& share, bool warn, const Remedy& remedy) {
  if (share.rate <= kWarnUnknown && share.rate <= share.most) return;
  const std::string advice = remedy();
  if (share.rate > share.most) {
    throw Error(ExitCode::kBadData,
                share.fact + ", more than data.max_unknown = " + config::number_text(share.most) +
                    " allows",
                advice + "; data.max_unknown = 1 trains all the same");
  }
  if (warn) log::warn(share.fact + ", " + share.effect + ": " + advice);
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
    judge({.rate = rate,
           .most = translation_of(experiment).data.max_unknown,
           .fact = name + ": " + percent_text(rate) + " of the " + (source ? "source" : "target") +
                   "'s tokens are `<unk>`",
           .effect = "which the model can neither read nor write"},
          warn, [&] { return remedy(tokenizers, experiment); });
  }
}

void require_known(const std::string& name, const TokenCounts& counts, const Experiment& experiment,
                   bool warn) {
  const double rate = counts.unknown_rate();
  judge({.rate = rate,
         .most = text_sections(experiment).max_unknown,
         .fact = name + ": " + percent_text(rate) + " of the tokens are unknown",
         .effect = "which the model cannot read"},
        warn, [&] { return remedy_of_one(experiment); });
}

}  // namespace stretto::experiment
