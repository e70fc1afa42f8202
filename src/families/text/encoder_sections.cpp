#include "families/text/encoder_sections.h"

#include "families/text/encoder_rules.h"

namespace stretto::experiment {

std::optional<EncoderSections> find_encoder_sections(const Experiment& experiment) {
  const auto* rules = dynamic_cast<const EncoderRules*>(find_task_rules(experiment));
  if (rules == nullptr) return std::nullopt;
  return rules->encoder_sections(experiment);
}

EncoderSections encoder_sections(const Experiment& experiment) {
  return find_encoder_sections(experiment).value();
}

}  // namespace stretto::experiment
