#pragma once

#include <string>

#include "config/field.h"
#include "data/labelled/labelled_options.h"
#include "families/text/text_eval_options.h"
#include "losses/label_loss_options.h"
#include "models/label_model_options.h"
#include "text/text_tokenizer_options.h"

namespace stretto::experiment {

/// The sections of a configuration with `task.name = "text_classification"`, beside those that
/// every experiment has.
struct TextClassificationOptions {
  static constexpr const char* kName = "text_classification";

  data::LabelledOptions data;
  text::TextTokenizerOptions tokenizer;
  models::LabelModelOptions model;
  losses::LabelLossOptions loss;
  TextEvalOptions eval;

  static auto fields() {
    using config::field;
    using O = TextClassificationOptions;
    return config::Fields{
        field(&O::data, "data", "labelled texts, or pairs of texts")
            .also_called({"dataset", "corpus", "datasets"}),
        field(&O::tokenizer, "tokenizer", "from text to ids")
            .also_called({"vocab", "vocabulary", "wordpiece"}),
        models::with_label_names_elsewhere(field(&O::model, "model", "the network"))
            .also_called({"network", "architecture"}),
        field(&O::loss, "loss", "what is minimised").also_called({"criterion", "objective"}),
        field(&O::eval, "eval", "validation while training"),
    };
  }
};

}  // namespace stretto::experiment
