// Recipes say how many parameters their models have; readers compare models by these numbers.
#include "tests/experiment/recipes.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "base/file.h"
#include "config/load.h"
#include "experiment/experiment_schema.h"
#include "families/masked_lm/masked_lm_options.h"
#include "families/question_answering/question_answering_options.h"
#include "families/text/encoder_sections.h"
#include "families/translation/translation_options.h"
#include "models/registry.h"
#include "models/text_model.h"

namespace stretto::models {
namespace {

namespace fs = std::filesystem;

experiment::Experiment loaded(const fs::path& path) {
  experiment::Experiment options, fallback;
  std::vector<config::Problem> problems;
  config::load_file(path, {}, experiment::experiment_schema(options),
                    experiment::experiment_schema(fallback), problems);
  for (const auto& problem : problems) ADD_FAILURE() << path << ": " << problem.what;
  return options;
}

/// "7,578,624 parameters" in the recipe's own comments; nothing where they give no number.
std::optional<int64_t> stated_parameters(const fs::path& path) {
  std::string text = read_file(path, 1 << 20);
  text = std::regex_replace(text, std::regex("\n# "), " ");
  std::smatch found;
  if (!std::regex_search(text, found, std::regex("([0-9][0-9,]*) parameters"))) return {};
  return std::stoll(std::regex_replace(found.str(1), std::regex(","), ""));
}

/// With a head of masked tokens, spans, or two labels.
int64_t parameters_of_text(const experiment::Experiment& options,
                           const experiment::EncoderSections& text) {
  const bool masked = options.task.is<experiment::MaskedLmOptions>();
  const bool answers = options.task.is<experiment::QuestionAnsweringOptions>();
  return num_parameters(*make_text_model({.model = *text.model,
                                          .rows = text.tokenizer->vocab_size,
                                          .head = masked    ? TextHeadKind::kMaskedTokens
                                                  : answers ? TextHeadKind::kSpans
                                                            : TextHeadKind::kLabels,
                                          .num_labels = 2,
                                          .device = at::kMeta}));
}

int64_t parameters_of(const experiment::Experiment& options) {
  if (const auto text = experiment::find_encoder_sections(options)) {
    return parameters_of_text(options, *text);
  }
  const int64_t rows =
      translation_of(options).tokenizer.vocab_size;  // joint, and a multiple of vocab_multiple
  return num_parameters(*make_model(
      translation_of(options).model,
      {.src_rows = rows, .tgt_rows = rows, .num_tgt_classes = rows, .device = at::kMeta}, nullptr));
}

TEST(RecipeModels, HaveTheParametersThatTheyState) {
  int stated = 0;
  for (const auto& path : stretto::testing::shipped_recipes(STRETTO_SOURCE_DIR)) {
    const auto number = stated_parameters(path);
    if (!number) continue;
    ++stated;
    EXPECT_EQ(parameters_of(loaded(path)), *number) << path;
  }
  EXPECT_GE(stated, 14);
}

TEST(RecipeModels, OfFamiliesOnMulti30kHaveAboutOneSize) {
  for (const auto& path : stretto::testing::shipped_recipes(STRETTO_SOURCE_DIR)) {
    const auto options = loaded(path);
    const bool compared = options.train.max_steps == 600 && path.stem() != "multi30k_beside_peers";
    if (!path.stem().string().starts_with("multi30k_") || !compared) continue;
    const int64_t number = parameters_of(options);
    EXPECT_GT(number, 7'000'000) << path;
    EXPECT_LT(number, 8'000'000) << path;
  }
}

}  // namespace
}  // namespace stretto::models
