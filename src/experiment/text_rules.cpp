#include "experiment/text_rules.h"

#include "base/text.h"
#include "models/misfits.h"

namespace stretto::experiment {
namespace {

void check_text_model(RuleCheck& c, const models::BertOptions& model) {
  for (const auto& misfit : models::misfits(model)) c.wrong(misfit.keys, misfit.what, misfit.hint);
}

void check_text_tokenizer(RuleCheck& c, const text::TextTokenizerOptions& tokenizer) {
  if (!tokenizer.merges.empty() && tokenizer.model.empty()) {
    c.wrong({"tokenizer.merges", "tokenizer.model"}, "merges belong to a vocab.json",
            "name the vocab.json as tokenizer.model");
  }
}

void check_text_lengths(RuleCheck& c, const TextSections& text) {
  if (text.max_text_tokens > text.max_tokens) {
    c.wrong({"data.max_tokens", "data.max_text_tokens"},
            std::to_string(text.max_tokens) + " is less than the longest text that is let in (" +
                std::to_string(text.max_text_tokens) + ")",
            "raise data.max_tokens, or lower data.max_text_tokens");
  }
  const int64_t positions = models::max_length_of(*text.model);
  if (positions < text.max_text_tokens) {
    c.wrong({"data.max_text_tokens", "model.max_positions", "model.positions"},
            counted(positions, "learned position") + ", texts may have " +
                counted(text.max_text_tokens, "token"),
            "lower it to " + std::to_string(positions) + ", or raise model.max_positions");
  }
}

}  // namespace

void TextRules::check_model(RuleCheck& check) const {
  const TextSections text = text_sections(check.e);
  check_text_model(check, *text.model);
  check_text_tokenizer(check, *text.tokenizer);
}

void TextRules::check_data(RuleCheck& check) const {
  check_text_lengths(check, text_sections(check.e));
}

void TextRules::check_training(RuleCheck& check) const {
  const TextSections text = text_sections(check.e);
  if (text.train->empty()) {
    check.wrong({"data.train"}, "there is no training text", "name files");
  }
  if (text.model->head == "none") {
    check.wrong(
        {"model.head", "task.name"},
        "\"none\" leaves an encoder without a head, and " + check.e.task.name() + " trains one",
        "leave it out; `stretto embed` takes runs without a head");
  }
}

ValidationData TextRules::validation_data(const Experiment& experiment) const {
  return {.there = !text_sections(experiment).valid->empty(),
          .name = "validation text",
          .keys = {"data.valid"},
          .remedy = "set data.valid"};
}

BatchBound TextRules::micro_batch(const Experiment& experiment) const {
  return {
      .key = "data.max_tokens", .value = text_sections(experiment).max_tokens, .unit = "tokens"};
}

std::vector<std::string> TextRules::init_rules(const Experiment& experiment) const {
  return text_sections(experiment).model->init;
}

const nn::LoraOptions* TextRules::lora(const Experiment& experiment) const {
  return &text_sections(experiment).model->lora;
}

bool TextRules::takes_tokenizer_of_other_run(const Experiment& experiment) const {
  return !experiment.train.init_from.empty() && experiment.train.init_vocabulary == "same" &&
         text_sections(experiment).tokenizer->model.empty();
}

ModelWidth TextRules::model_width(const Experiment& experiment) const {
  const auto& model = *text_sections(experiment).model;
  return {.key = "model.d_model", .value = models::sizes_of(model).d_model};
}

}  // namespace stretto::experiment
