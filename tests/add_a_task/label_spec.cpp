#include "tests/add_a_task/label_spec.h"

#include "config/open_part.h"
#include "tests/add_a_task/label_display.h"
#include "tests/add_a_task/label_requests.h"
#include "tests/add_a_task/label_rules.h"
#include "tests/add_a_task/labelling_options.h"

namespace stretto::experiment {
namespace {

FamilyCommand label_eval() {
  return {.options = {command_option(&tasks::LabelEvalOptions::decimals,
                                     {.name = "--decimals",
                                      .type = "N",
                                      .help = "digits of each score behind the point; default 4",
                                      .least = 1,
                                      .most = 12})}};
}

FamilyCommand label_infer() {
  return {.options = {command_option(
              &tasks::LabelInferOptions::with_text,
              {.name = "--with-text", .help = "print each line behind its label, after a tab"})}};
}

}  // namespace

FamilySpec labelling_spec() {
  return {.options = config::open_alternative<LabellingOptions>(),
          .also_called = {"language_identification"},
          .rules = &label_rules,
          .display = [](const Experiment& /*experiment*/) { return tasks::label_display(); },
          .eval = label_eval(),
          .infer = label_infer()};
}

}  // namespace stretto::experiment
