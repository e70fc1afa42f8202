#include "families/question_answering/question_answering_spec.h"

#include "config/open_part.h"
#include "families/question_answering/question_answering_display.h"
#include "families/question_answering/question_answering_folders.h"
#include "families/question_answering/question_answering_options.h"
#include "families/question_answering/question_answering_rules.h"
#include "families/question_answering/requests.h"
#include "families/text/command_options.h"
#include "families/text/export_formats.h"
#include "families/text/text_plan.h"

namespace stretto::experiment {
namespace {

FamilyCommand question_eval() {
  using O = tasks::QuestionEvalFiles;
  return {.options = {
              command_option(&O::data, data_option()),
              command_option(&O::predictions, predictions_option()),
              command_option(&O::nbest,
                             {.name = "--nbest",
                              .type = "FILE",
                              .help = "write the candidates of each question to this file, as JSON",
                              .check = must_be_writable("--nbest")}),
              command_option(&O::none_scores, {.name = "--none-scores",
                                               .type = "FILE",
                                               .help = "write how much likelier no answer is, for "
                                                       "each question, to this file",
                                               .check = must_be_writable("--none-scores")}),
          }};
}

FamilyCommand question_infer() {
  using O = tasks::QuestionInferArguments;
  return {.options = {command_option(&O::nbest, nbest_option()),
                      command_option(&O::scores, scores_option())},
          .batch_keys = {"eval.max_tokens", "eval.max_samples"}};
}

}  // namespace

FamilySpec question_answering_spec() {
  return {.options = config::open_alternative<QuestionAnsweringOptions>(),
          .also_called = {"qa", "squad", "extractive_qa"},
          .rules = &question_answering_rules,
          .display =
              [](const Experiment& /*experiment*/) { return tasks::question_answering_display(); },
          .eval = question_eval(),
          .infer = question_infer(),
          .embed = embed_command(),
          .plan = text_plan(),
          .folders = &interchange::question_answering_folders,
          .formats = encoder_formats()};
}

}  // namespace stretto::experiment
