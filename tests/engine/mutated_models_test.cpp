// Recipes with mistakes that `check` accepts, shown to the engine: tests/lint/mutated_recipes_test
// judges what refuses them before any model is made.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/error.h"
#include "engine/commands.h"
#include "families/image_classification/image_classification_options.h"
#include "families/text/requests.h"
#include "families/text/text_sections.h"
#include "families/translation/requests.h"
#include "families/translation/translation_options.h"
#include "lint/lint.h"
#include "tests/lint/mutated_recipes.h"

namespace stretto::engine {
namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STRETTO_FEW_MODELS
#endif
#endif
#ifdef STRETTO_FEW_MODELS
constexpr size_t kModels = 100;
#else
constexpr size_t kModels = 300;
#endif
// About one in fifteen is accepted.
constexpr size_t kMostRecipes = 30 * kModels;

/// Whether the model of an accepted configuration could be built.
struct BuildResult {
  bool is_built = false;
  std::string fault = {};  ///< empty = built, or refused in words
};

/// Tables as large as vocabularies make them, those of translation one for each side.
tasks::CostRequest cost_request(experiment::Experiment e) {
  if (e.task.is<experiment::ImageClassificationOptions>()) {
    e.task.as<experiment::ImageClassificationOptions>().data.classes = {"cat", "dog"};
    return {.experiment = e};
  }
  if (experiment::find_text_sections(e)) {
    return {.experiment = e, .sizes = tasks::TextSizes{.rows = 4000}};
  }
  if (!e.task.is<experiment::TranslationOptions>()) return {.experiment = e};
  const int64_t tgt_rows = translation_of(e).tokenizer.joint ? 4000 : 5000;
  return {.experiment = e,
          .sizes = tasks::TranslationSizes{.src_rows = 4000, .tgt_rows = tgt_rows}};
}

BuildResult try_build(const experiment::Experiment& e) {
  try {
    const auto tensors = tensor_names(e);
    const auto cost = model_cost(cost_request(e));
    if (tensors.empty() || cost.parameters <= 0) return {.fault = "a model of no tensors"};
    if (!std::isfinite(cost.training_flops) || cost.training_flops <= 0)
      return {.fault = "a model that costs nothing, or no number"};
    return {.is_built = true};
  } catch (const Error& error) {
    return {.fault = error.advice().empty() ? "no remedy: " + error.message() : ""};
  } catch (const std::exception& error) {
    return {.fault = std::string("no Error but ") + error.what()};
  }
}

TEST(MutatedModels, AreBuiltOrRefusedInWords) {
  stretto::testing::MutatedRecipes recipes(STRETTO_SOURCE_DIR, /*seed=*/5);
  size_t accepted = 0, built = 0, faults = 0;
  for (size_t i = 0; i < kMostRecipes && accepted < kModels && faults < 5; ++i) {
    const auto made = recipes.next();
    const auto found = lint::inspect(made.path, {});
    if (!found.is_read || !found.problems.empty()) continue;
    ++accepted;
    const BuildResult result = try_build(found.options);
    built += result.is_built ? 1 : 0;
    if (result.fault.empty()) continue;
    ++faults;
    ADD_FAILURE() << result.fault << "\nin\n" << made.text;
  }
  if (faults > 0) return;
  EXPECT_EQ(accepted, kModels);
  // What the rules accept is rarely refused later.
  EXPECT_GE(built, accepted - accepted / 20);
}

}  // namespace
}  // namespace stretto::engine
