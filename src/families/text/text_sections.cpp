#include "families/text/text_sections.h"

#include "families/text/text_rules.h"

namespace stretto::experiment {

std::optional<TextSections> find_text_sections(const Experiment& experiment) {
  const auto* rules = dynamic_cast<const TextRules*>(find_task_rules(experiment));
  if (rules == nullptr) return std::nullopt;
  return rules->sections(experiment);
}

TextSections text_sections(const Experiment& experiment) {
  return find_text_sections(experiment).value();
}

}  // namespace stretto::experiment
