#include "experiment/known_text.h"

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "config/schema.h"
#include "experiment/text_sections.h"

namespace stretto::experiment {
namespace {

// What helps depends on where the tokenizers come from.
std::string remedy(const text::TokenizerPair& tokenizers, const Experiment& experiment) {
  const bool taken_over =
      !experiment.train.init_from.empty() && experiment.train.init_vocabulary == "same";
  const bool trained = !taken_over && !text::names_tokenizer(translation_of(experiment).tokenizer);
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
  const bool taken_over =
      !experiment.train.init_from.empty() && experiment.train.init_vocabulary == "same";
  if (!named && !taken_over) {
    return "raise tokenizer.vocab_size, or use tokenizer.type = \"byte_bpe\"";
  }
  return "give the tokenizer that was made for this text, or leave tokenizer.model and "
         "train.init_from out to train one";
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
  const double most = translation_of(experiment).data.max_unknown;
  for (const bool source : {true, false}) {
    const double rate = (source ? src : tgt).unknown_rate();
    if (rate <= kWarnUnknown && rate <= most) continue;
    const std::string fact = name + ": " + percent_text(rate) + " of the " +
                             (source ? "source" : "target") + "'s tokens are `<unk>`";
    const std::string advice = remedy(tokenizers, experiment);
    if (rate > most) {
      throw Error(ExitCode::kBadData,
                  fact + ", more than data.max_unknown = " + config::number_text(most) + " allows",
                  advice + "; data.max_unknown = 1 trains all the same");
    }
    if (warn) log::warn(fact + ", which the model can neither read nor write: " + advice);
  }
}

void require_known(const std::string& name, const TokenCounts& counts, const Experiment& experiment,
                   bool warn) {
  const double most = text_sections(experiment).max_unknown, rate = counts.unknown_rate();
  if (rate <= kWarnUnknown && rate <= most) return;
  const std::string fact = name + ": " + percent_text(rate) + " of the tokens are unknown";
  const std::string advice = remedy_of_one(experiment);
  if (rate > most) {
    throw Error(ExitCode::kBadData,
                fact + ", more than data.max_unknown = " + config::number_text(most) + " allows",
                advice + "; data.max_unknown = 1 trains all the same");
  }
  if (warn) log::warn(fact + ", which the model cannot read: " + advice);
}

}  // namespace stretto::experiment
