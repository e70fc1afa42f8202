#include "families/text/encoder_sections.h"

#include "families/text/encoder_rules.h"

namespace stretto::experiment {

namespace {

/// Null for families that are not of encoded texts.
const EncoderRules* find_encoder_rules(const Experiment& experiment) {
  return dynamic_cast<const EncoderRules*>(find_task_rules(experiment));
}

}  // namespace

void EncoderSections::set_model(const models::BertOptions& options) {
  model = &options;
  has_head = options.head != "none";
  num_segments = options.num_segments;
  max_length = models::max_length_of(options);
  d_model = models::sizes_of(options).d_model;
  init = &options.init;
  lora = &options.lora;
  adapter = &options.adapter;
}

void EncoderSections::set_model(const models::LabelModelOptions& options) {
  if (options.is<models::BertOptions>()) {
    set_model(options.as<models::BertOptions>());
    return;
  }
  causal = &options;
  const models::CausalModelOptions stack = models::causal_stack_of(options);
  max_length = models::max_length_of(stack);
  d_model = models::d_model_of(stack);
  init = &models::init_of(options);
  lora = &models::lora_of(options);
  adapter = &models::adapter_of(options);
}

std::optional<EncoderSections> find_encoder_sections(const Experiment& experiment) {
  const EncoderRules* rules = find_encoder_rules(experiment);
  if (rules == nullptr) return std::nullopt;
  return rules->encoder_sections(experiment);
}

EncoderSections encoder_sections(const Experiment& experiment) {
  return find_encoder_sections(experiment).value();
}

bool reads_pooled_rows(const Experiment& experiment) {
  const EncoderRules* rules = find_encoder_rules(experiment);
  return rules != nullptr && rules->reads_pooled_rows();
}

}  // namespace stretto::experiment
