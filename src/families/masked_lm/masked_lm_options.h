#pragma once

#include "config/field.h"
#include "data/documents/masked_text_options.h"
#include "families/text/text_eval_options.h"
#include "losses/masked_token_loss_options.h"
#include "models/bert_options.h"
#include "text/text_tokenizer_options.h"

namespace stretto::experiment {

/// The sections of a configuration with `task.name = "masked_lm"`, beside those that every
/// experiment has.
struct MaskedLmOptions {
  static constexpr const char* kName = "masked_lm";

  data::MaskedTextOptions data;
  text::TextTokenizerOptions tokenizer;
  models::BertOptions model;
  losses::MaskedTokenLossOptions loss;
  TextEvalOptions eval;

  static auto fields() {
    using config::field;
    using O = MaskedLmOptions;
    return config::Fields{
        field(&O::data, "data", "text, read in place")
            .also_called({"dataset", "corpus", "datasets"}),
        field(&O::tokenizer, "tokenizer", "from text to ids and back")
            .also_called({"vocab", "vocabulary", "wordpiece"}),
        field(&O::model, "model", "the network").also_called({"network", "architecture"}),
        field(&O::loss, "loss", "what is minimised").also_called({"criterion", "objective"}),
        field(&O::eval, "eval", "validation while training"),
    };
  }
};

}  // namespace stretto::experiment
