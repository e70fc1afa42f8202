#include "tests/add_a_task/label_spec.h"

#include "config/open_part.h"
#include "tests/add_a_task/label_display.h"
#include "tests/add_a_task/label_rules.h"
#include "tests/add_a_task/labelling_options.h"

namespace stretto::experiment {

FamilySpec labelling_spec() {
  return {.options = config::open_alternative<LabellingOptions>(),
          .also_called = {"language_identification"},
          .rules = &label_rules,
          .display = [](const Experiment& /*experiment*/) { return tasks::label_display(); }};
}

}  // namespace stretto::experiment
