#include <gtest/gtest.h>

#include <cstdint>

#include "base/text.h"
#include "experiment/family_spec.h"
#include "lint/lint.h"
#include "tests/experiment/recipes.h"

namespace stretto::lint {
namespace {

// `stretto plan --hours` trains them.
TEST(ResizedRecipes, AreSoundWhereverAPlanMayMakeThemSmallerOrLarger) {
  int64_t resized_ones = 0;
  for (const auto& path : stretto::testing::shipped_recipes(STRETTO_SOURCE_DIR)) {
    const auto recipe = inspect(path, {});
    const auto* family = recipe.is_read ? experiment::find_family(recipe.options) : nullptr;
    if (!recipe.problems.empty() || family == nullptr || !family->plan) continue;
    if (!recipe.options.train.init_from.empty() || family->plan->shape == nullptr) continue;
    const auto shape = family->plan->shape(recipe.options);
    if (!shape.can_change()) continue;
    ++resized_ones;
    EXPECT_GT(shape.fan_in, 0) << path;
    for (const double factor : {1.0, 0.5, 2.0}) {
      const auto keys = experiment::resized(shape, factor, factor);
      for (const auto& problem : inspect(path, keys).problems) {
        ADD_FAILURE() << path << " with " << join(keys, " ") << ": " << problem.place << ": "
                      << problem.what;
      }
    }
  }
  EXPECT_GT(resized_ones, 20);
}

}  // namespace
}  // namespace stretto::lint
