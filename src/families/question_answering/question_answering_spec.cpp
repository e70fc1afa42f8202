#include "families/question_answering/question_answering_spec.h"

#include "config/open_part.h"
#include "families/question_answering/question_answering_display.h"
#include "families/question_answering/question_answering_options.h"
#include "families/question_answering/question_answering_rules.h"

namespace stretto::experiment {

FamilySpec question_answering_spec() {
  return {.options = config::open_alternative<QuestionAnsweringOptions>(),
          .also_called = {"qa", "squad", "extractive_qa"},
          .rules = &question_answering_rules,
          .display =
              [](const Experiment& /*experiment*/) { return tasks::question_answering_display(); },
          .eval_options = {{"--data"}, {"--predictions"}, {"--nbest"}, {"--none-scores"}},
          .infer_options = {{"--nbest"}, {"--scores"}}};
}

}  // namespace stretto::experiment
