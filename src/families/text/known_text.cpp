#include "families/text/known_text.h"

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "config/schema.h"
#include "experiment/task_rules.h"
#include "families/text/text_sections.h"

namespace stretto::experiment {
namespace {

std::string remedy_of_one(const Experiment& experiment) {
  const auto& tokenizer = *text_sections(experiment).tokenizer;
  if (tokenizer.model.empty() && !takes_tokenizer_of_other_run(experiment)) {
    const std::string advice = "raise tokenizer.vocab_size, or use tokenizer.type = \"byte_bpe\"";
    // Published texts of words, such as the Penn Treebank, have it in the place of rare ones.
    return tokenizer.type == "word" ? advice + "; `<unk>` in the text itself counts too" : advice;
  }
  return "give the tokenizer that was made for this text, or leave tokenizer.model and "
         "train.init_from out to train one";
}

}  // namespace

void require_known_share(const UnknownShare& share, bool warn,
                         const std::function<std::string()>& remedy) {
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

void require_known(const std::string& name, const TokenCounts& counts, const Experiment& experiment,
                   bool warn) {
  const double rate = counts.unknown_rate();
  require_known_share({.rate = rate,
                       .most = text_sections(experiment).max_unknown,
                       .fact = name + ": " + percent_text(rate) + " of the tokens are unknown",
                       .effect = "which the model cannot read"},
                      warn, [&] { return remedy_of_one(experiment); });
}

}  // namespace stretto::experiment
