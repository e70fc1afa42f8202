#include "families/translation/translation_commands.h"

#include <utility>

#include "base/error.h"
#include "families/text/command_options.h"
#include "families/translation/heads.h"
#include "families/translation/requests.h"

namespace stretto::experiment {
namespace {

using EvalFiles = tasks::TranslationEvalFiles;
using InferFiles = tasks::TranslationInferFiles;

void check_eval(const Experiment& experiment, const FamilyValues& values) {
  const auto& asked = values.as<EvalFiles>();
  if (asked.src.empty() != asked.tgt.empty()) {
    throw Error(ExitCode::kUsage, "stretto eval: --src and --tgt go together",
                "give a source file and its translation, line for line");
  }
  if (!asked.head.empty()) head_named(experiment, asked.head, "--head");
}

void check_infer(const Experiment& experiment, const FamilyValues& values) {
  head_named(experiment, values.as<InferFiles>().head, "--head");
}

// Files of both sides have the same messages.
CommandOption side_of_text(std::string EvalFiles::*member, const char* name, const char* help,
                           std::vector<std::string> data_keys) {
  return command_option(member, {.name = name,
                                 .type = "FILE",
                                 .help = help,
                                 .data_keys = std::move(data_keys),
                                 .check = must_exist("check --src, --src2 and --tgt")});
}

}  // namespace

FamilyCommand translation_eval() {
  auto second_source = side_of_text(&EvalFiles::src2, "--src2",
                                    "second source beside --src, of a run that reads two",
                                    /*data_keys=*/{});  // beside a first one, which has them
  return {
      .options = {command_option(
                      &EvalFiles::head,
                      {.name = "--head",
                       .type = "NAME",
                       .help = "of several decoders (model.heads) the only one to evaluate; "
                               "default all"}),
                  side_of_text(&EvalFiles::src, "--src",
                               "source text; default data.test_src, else data.valid_src",
                               {"data.valid_src", "data.train_src"}),
                  std::move(second_source),
                  side_of_text(&EvalFiles::tgt, "--tgt", "its translation, line for line",
                               {"data.valid_tgt", "data.train_tgt"}),
                  command_option(
                      &EvalFiles::hypotheses,
                      {.name = "--hypotheses",
                       .type = "FILE",
                       .help =
                           "write the translations to this file, line for line; decodes even where "
                           "eval.bleu is false",
                       .check = must_be_writable("--hypotheses")}),
                  command_option(&EvalFiles::per_line, per_line_option())},
      .check = &check_eval};
}

FamilyCommand translation_infer() {
  auto nbest = nbest_option();
  nbest.key = "decode.nbest";
  return {
      .options = {command_option(
                      &InferFiles::head,
                      {.name = "--head",
                       .type = "NAME",
                       .help =
                           "which of several decoders writes (model.heads); needed where there are "
                           "several"}),
                  {.name = "--beam",
                   .type = "N",
                   .help = "decode.beam_size",
                   .value = int64_t{0},
                   .least = 1,
                   .most = 1000,
                   .key = "decode.beam_size"},
                  std::move(nbest),
                  {.name = "--sample",
                   .help = "draw at random instead of searching",
                   .value = false,
                   .key = "decode.method=sample"},
                  command_option(&InferFiles::scores, scores_option()),
                  command_option(&InferFiles::alignments,
                                 {.name = "--alignments",
                                  .help = "print source-target pairs of positions too"}),
                  command_option(&InferFiles::prefix_file,
                                 {.name = "--prefix",
                                  .type = "FILE",
                                  .help = "text that each output starts with, line for line"}),
                  command_option(&InferFiles::src2_file,
                                 {.name = "--src2",
                                  .type = "FILE",
                                  .help = "second source, line for line, of a run that reads two; "
                                          "default: behind a tab of each line"})},
      .check = &check_infer,
      .batch_keys = {"decode.max_tokens"}};
}

}  // namespace stretto::experiment
