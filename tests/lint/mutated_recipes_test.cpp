// Recipes with mistakes, and with numbers that overflow what is computed with them: each is
// accepted or refused in words, and nothing else happens.
#include "tests/lint/mutated_recipes.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "experiment/load_experiment.h"
#include "lint/lint.h"
#include "tests/lint/extreme_values.h"

namespace stretto::lint {
namespace {

// For each of four seeds. Under sanitizers, where each costs five times as much, fewer are enough:
// config_fuzz makes as many mistakes there.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STRETTO_FEW_CONFIGURATIONS
#endif
#endif
#ifdef STRETTO_FEW_CONFIGURATIONS
constexpr size_t kConfigurations = 200;
#else
constexpr size_t kConfigurations = 2500;
#endif
constexpr size_t kExtremes = 400;

/// What is wrong with a resolved copy; empty = nothing.
std::string fault_in_copy(const Inspection& found) {
  const auto again =
      experiment::load_stored_experiment(found.resolved_toml, "/elsewhere/config.toml", {});
  if (again.config_hash != found.config_hash) return "another hash when read back";
  return again.resolved_toml == found.resolved_toml ? "" : "another text when read back";
}

/// What is wrong with the answer to a configuration; empty = nothing.
std::string fault_in(const Inspection& found) {
  for (const auto* problems : {&found.problems, &found.missing}) {
    for (const auto& problem : *problems) {
      if (auto fault = stretto::testing::lacks(problem); !fault.empty()) return fault;
    }
  }
  for (const auto& finding : found.findings) {
    if (finding.place.empty() || finding.reason.empty() || finding.fix.empty())
      return finding.code + " without place, reason or remedy";
  }
  if (!found.problems.empty()) return "";
  return found.is_read ? fault_in_copy(found) : "neither read nor refused";
}

/// What is wrong with the answer to a configuration; empty = nothing.
std::string fault_in_answer(const std::filesystem::path& path,
                            const std::vector<std::string>& overrides, size_t& accepted) {
  try {
    const auto found = inspect(path, overrides);
    accepted += found.problems.empty() ? 1 : 0;
    return fault_in(found);
  } catch (const Error& error) {
    return "refused as a whole: " + error.message();
  } catch (const std::exception& error) {
    return std::string("no Error but ") + error.what();
  }
}

/// A configuration to judge, and how it is shown.
struct Asked {
  std::filesystem::path path;
  std::vector<std::string> overrides;
  std::string shown;
};

/// Judges so many; at least `least` of them are accepted, and at most half.
template <class Next>
void expect_answers(size_t count, size_t least, const Next& next) {
  size_t accepted = 0, faults = 0;
  for (size_t i = 0; i < count && faults < 5; ++i) {
    const Asked asked = next();
    const std::string fault = fault_in_answer(asked.path, asked.overrides, accepted);
    if (fault.empty()) continue;
    ++faults;
    ADD_FAILURE() << fault << "\nin " << asked.shown;
  }
  EXPECT_LE(accepted, count / 2);
  EXPECT_GE(accepted, least);
}

class MutatedRecipes : public ::testing::TestWithParam<uint64_t> {};

TEST_P(MutatedRecipes, AreAcceptedOrRefusedInWords) {
  stretto::testing::MutatedRecipes recipes(STRETTO_SOURCE_DIR, GetParam());
  ASSERT_GE(recipes.num_recipes(), 40u);
  // Mistakes of every kind, and few enough that rules and the linter see many of them: about one
  // in fifteen is accepted, and 200 leave room for chance.
  expect_answers(kConfigurations, kConfigurations / 50, [&]() -> Asked {
    const auto made = recipes.next();
    return {made.path, {}, made.text};
  });
}

TEST_P(MutatedRecipes, WithNumbersThatOverflowAreAcceptedOrRefusedInWords) {
  stretto::testing::ExtremeValues recipes(STRETTO_SOURCE_DIR, GetParam());
  ASSERT_GE(recipes.num_recipes(), 25u);
  expect_answers(kExtremes, kExtremes / 20, [&]() -> Asked {
    const auto made = recipes.next();
    return {made.recipe, made.overrides,
            made.recipe.string() + " with\n" + join(made.overrides, "\n")};
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, MutatedRecipes, ::testing::Values(1U, 2U, 3U, 4U));

}  // namespace
}  // namespace stretto::lint
