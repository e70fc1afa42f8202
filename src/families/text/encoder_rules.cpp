#include "families/text/encoder_rules.h"

#include <utility>

#include "base/text.h"
#include "experiment/model_comparison.h"
#include "experiment/taken_parts.h"
#include "families/text/causal_taken.h"
#include "families/text/encoder_taken.h"
#include "models/option_conflicts.h"
#include "text/behind_separator.h"

namespace stretto::experiment {
namespace {

// An encoder without a head may bring its pooler along.
bool takes_pooling(const Experiment& theirs, const Experiment& own) {
  if (!reads_pooled_rows(own)) return false;
  const auto &other = *encoder_sections(theirs).model, &model = *encoder_sections(own).model;
  if (other.head == "none") return models::has_pooler(other) && models::has_pooler(model);
  return reads_pooled_rows(theirs);
}

bool takes_head_of_masks(const Experiment& theirs, const Experiment& own, const TakenParts& taken) {
  return encoder_rules_of(theirs).predicts_masked_tokens() &&
         encoder_rules_of(own).predicts_masked_tokens() && taken.takes("head.", "head.");
}

// The head of masked tokens has an activation and a norm as the encoder has them.
bool is_of_masked_head(const std::string& key) {
  return key == "model.activation" || key == "model.norm_layer" || key == "model.norm_epsilon";
}

}  // namespace

void EncoderRules::check_model(RuleCheck& check) const {
  const EncoderSections sections = encoder_sections(check.e);
  const auto conflicts = sections.causal != nullptr
                             ? models::option_conflicts(models::causal_stack_of(*sections.causal))
                             : models::option_conflicts(*sections.model);
  for (const auto& conflict : conflicts) {
    check.wrong(conflict.keys, conflict.what, conflict.hint);
  }
  TextRules::check_model(check);
}

void EncoderRules::check_data(RuleCheck& check) const {
  TextRules::check_data(check);
  const EncoderSections text = encoder_sections(check.e);
  const int64_t positions = text.max_length;
  if (positions < text.max_text_tokens) {
    check.wrong({"data.max_text_tokens", "model.max_positions", "model.positions"},
                counted(positions, "learned position") + ", texts may have " +
                    counted(text.max_text_tokens, "token"),
                "lower it to " + std::to_string(positions) + ", or raise model.max_positions");
  }
}

void EncoderRules::check_training(RuleCheck& check) const {
  TextRules::check_training(check);
  if (!encoder_sections(check.e).has_head) {
    check.wrong(
        {"model.head", "task.name"},
        "\"none\" leaves an encoder without a head, and " + check.e.task.name() + " trains one",
        "leave it out; `stretto embed` takes runs without a head");
  }
}

std::optional<models::CausalModelOptions> EncoderRules::causal_stack(
    const Experiment& experiment) const {
  const EncoderSections sections = encoder_sections(experiment);
  if (sections.causal == nullptr) return std::nullopt;
  return models::causal_stack_of(*sections.causal);
}

std::shared_ptr<const text::Tokenizer> EncoderRules::tokenizer_of_model(
    const Experiment& experiment, std::shared_ptr<const text::Tokenizer> tokenizer) const {
  if (encoder_sections(experiment).causal == nullptr) return tokenizer;
  return text::behind_separator(std::move(tokenizer));
}

std::vector<std::string> EncoderRules::init_rules(const Experiment& experiment) const {
  return *encoder_sections(experiment).init;
}

const nn::LoraOptions* EncoderRules::lora(const Experiment& experiment) const {
  return encoder_sections(experiment).lora;
}

const nn::AdapterOptions* EncoderRules::adapter(const Experiment& experiment) const {
  return encoder_sections(experiment).adapter;
}

std::vector<ModelDifference> EncoderRules::hidden_differences(
    const Experiment& theirs, const Experiment& own, const std::vector<std::string>& stored) const {
  if (causal_stack(own) || find_causal_stack(theirs)) {
    return causal_differences(theirs, own, stored);
  }
  const auto other = find_encoder_sections(theirs);
  if (!other) return {};
  const auto &before = *other->model, &now = *encoder_sections(own).model;
  const TakenParts taken(own.train.init_only, stored);
  const bool layers = taken.takes_layers("encoder.", "encoder.");
  const bool masked_head = takes_head_of_masks(theirs, own, taken);
  const bool adapters = before.adapter.is_on() && now.adapter.is_on();
  ModelComparison pair(theirs, own);
  for (const auto& key : pair.hidden_keys()) {
    if (!layers && !(masked_head && is_of_masked_head(key))) continue;
    if (key.starts_with("model.adapter.") && !adapters) continue;
    if (key == "model.num_heads") {  // which a preset may give
      pair.compare_values({.key = key,
                           .theirs = std::to_string(models::sizes_of(before).num_heads),
                           .own = std::to_string(models::sizes_of(now).num_heads),
                           .key_there = key});
    } else if (key == "model.head_dim" && before.head_dim + now.head_dim > 0) {  // 0 is a width too
      pair.compare_values({.key = key,
                           .theirs = std::to_string(models::head_width_of(before)),
                           .own = std::to_string(models::head_width_of(now)),
                           .key_there = key});
    } else {
      pair.compare(key);
    }
  }
  if (taken.takes("head.", "head.") && takes_pooling(theirs, own)) pair.compare("model.pooling");
  return pair.found();
}

std::vector<TakenValue> EncoderRules::values_of_other_model(const OtherModel& other,
                                                            const Experiment& own,
                                                            const config::Origins& given) const {
  if (find_causal_stack(other.options)) {
    return takes_causal_stacks() ? causal_values_of(other, own, given) : std::vector<TakenValue>();
  }
  return encoder_values_of(other, own, given);
}

ModelWidth EncoderRules::model_width(const Experiment& experiment) const {
  return {.key = "model.d_model", .value = encoder_sections(experiment).d_model};
}

const EncoderRules& encoder_rules_of(const Experiment& experiment) {
  return dynamic_cast<const EncoderRules&>(*find_task_rules(experiment));
}

}  // namespace stretto::experiment
