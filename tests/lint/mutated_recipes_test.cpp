// Recipes with mistakes: each is accepted or refused in words, and nothing else happens.
#include "tests/lint/mutated_recipes.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "experiment/load_experiment.h"
#include "lint/lint.h"

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

class MutatedRecipes : public ::testing::TestWithParam<uint64_t> {};

TEST_P(MutatedRecipes, AreAcceptedOrRefusedInWords) {
  stretto::testing::MutatedRecipes recipes(STRETTO_SOURCE_DIR, GetParam());
  ASSERT_GE(recipes.num_recipes(), 40u);
  size_t accepted = 0, refused = 0, faults = 0;
  for (size_t i = 0; i < kConfigurations && faults < 5; ++i) {
    const auto made = recipes.next();
    std::string fault;
    try {
      const auto found = inspect(made.path, {});
      fault = fault_in(found);
      ++(found.problems.empty() ? accepted : refused);
    } catch (const Error& error) {
      fault = "refused as a whole: " + error.message();
    } catch (const std::exception& error) {
      fault = std::string("no Error but ") + error.what();
    }
    if (fault.empty()) continue;
    ++faults;
    ADD_FAILURE() << fault << "\nin\n" << made.text;
  }
  // Mistakes of every kind, and few enough that rules and the linter see many of them: about one
  // in fifteen is accepted, and 200 leave room for chance.
  EXPECT_GE(refused, kConfigurations / 2);
  EXPECT_GE(accepted, kConfigurations / 50);
}

INSTANTIATE_TEST_SUITE_P(Seeds, MutatedRecipes, ::testing::Values(1U, 2U, 3U, 4U));

}  // namespace
}  // namespace stretto::lint
