#include "families/text/command_options.h"

#include "base/error.h"
#include "base/named_output.h"
#include "families/text/requests.h"

namespace stretto::experiment {
namespace {

// The last step of hours of work would fail. Pipes and devices have names of their own.
void require_npy(const std::string& output) {
  if (output.empty()) return;
  if (!output.ends_with(".npy") && is_file_output(output)) {
    throw Error(ExitCode::kUsage, "--output " + output + ": not a .npy file",
                "name a file that ends in .npy; JSON goes to stdout");
  }
  require_output_place(output, "--output");
}

}  // namespace

CommandOption data_option() {
  return {.name = "--data",
          .type = "FILE",
          .help =
              "file to score, in the format of the run's data (data.text=…, data.format=… for "
              "another); again for more files; default "
              "data.test, else data.valid; not of translation",
          .data_keys = {"data.valid", "data.train"},
          .check = must_exist("check --data")};
}

CommandOption predictions_option() {
  return {.name = "--predictions",
          .type = "FILE",
          .help =
              "write answers by id as JSON, or a line with label and probabilities for each "
              "text, to this file",
          .check = must_be_writable("--predictions")};
}

CommandOption per_line_option() {
  return {.name = "--per-line",
          .type = "FILE",
          .help =
              "write log-probabilities to this file, separated by tabs: of translation a line a "
              "pair (sum, mean, target tokens); of a language model a line for each line or "
              "document of the text, read by itself (sum, tokens, words)",
          .check = must_be_writable("--per-line")};
}

CommandOption nbest_option() {
  return {.name = "--nbest",
          .type = "N",
          .help =
              "decode.nbest: hypotheses for each line, or answers for each question; or fillers "
              "for each mask, 5 by default",
          .value = int64_t{0},
          .least = 1,
          .most = 1000};
}

CommandOption scores_option() {
  return {
      .name = "--scores",
      .help = "print score and text, separated by a tab; of labels their probabilities behind them",
      .value = false};
}

FamilyCommand embed_command() {
  using O = tasks::EmbedArguments;
  return {.options = {
              command_option(&O::pooling,
                             {.name = "--pooling",
                              .type = "mean|cls",
                              .help = "mean of all tokens, special ones included, or cls: the "
                                      "first token; default mean",
                              .choices = {"mean", "cls"}}),
              command_option(&O::normalize,
                             {.name = "--normalize", .help = "scale each vector to length 1"}),
              command_option(&O::output,
                             {.name = "--output",
                              .type = "FILE.npy",
                              .help = "write an array fp32 [lines, width] for numpy.load; default "
                                      "JSON on stdout",
                              .check = &require_npy}),
              command_option(&O::max_tokens,
                             {.name = "--max-tokens",
                              .type = "N",
                              .help = "longer lines are cut to so many, special ones included; "
                                      "default data.max_text_tokens of the run",
                              .least = 3,
                              .most = 1'000'000}),
              command_option(&O::batch_tokens,
                             {.name = "--batch-tokens",
                              .type = "N",
                              .help = "tokens that are encoded together; default 512 on a CPU, "
                                      "32,768 on a GPU",
                              .least = 1,
                              .most = 100'000'000}),
          }};
}

}  // namespace stretto::experiment
