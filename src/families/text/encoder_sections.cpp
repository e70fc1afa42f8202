#include "families/text/encoder_sections.h"

#include "families/text/encoder_rules.h"

namespace stretto::experiment {

int64_t EncoderSections::max_length() const {
  return causal != nullptr ? models::max_length_of(models::causal_stack_of(*causal))
                           : models::max_length_of(*model);
}

int64_t EncoderSections::d_model() const {
  return causal != nullptr ? models::d_model_of(models::causal_stack_of(*causal))
                           : models::sizes_of(*model).d_model;
}

const std::vector<std::string>& EncoderSections::init() const {
  return causal != nullptr ? models::init_of(*causal) : model->init;
}

const nn::LoraOptions& EncoderSections::lora() const {
  return causal != nullptr ? models::lora_of(*causal) : model->lora;
}

const nn::AdapterOptions& EncoderSections::adapter() const {
  return causal != nullptr ? models::adapter_of(*causal) : model->adapter;
}

std::optional<EncoderSections> find_encoder_sections(const Experiment& experiment) {
  const auto* rules = dynamic_cast<const EncoderRules*>(find_task_rules(experiment));
  if (rules == nullptr) return std::nullopt;
  return rules->encoder_sections(experiment);
}

EncoderSections encoder_sections(const Experiment& experiment) {
  return find_encoder_sections(experiment).value();
}

bool reads_pooled_rows(const Experiment& experiment) {
  return encoder_rules_of(experiment).reads_pooled_rows();
}

}  // namespace stretto::experiment
