#include <gtest/gtest.h>

#include "tests/lint/sound_config.h"

namespace stretto::lint {
namespace {

using testing::codes_of;
using testing::lint_of;

TEST(LintOfARun, AValidationAfterEveryUpdateIsSaidSo) {
  const auto found = lint_of({"eval.every=1"});
  ASSERT_EQ(codes_of(found), std::vector<std::string>{"EV004"});
  EXPECT_NE(found[0].reason.find("validates every update may"), std::string::npos)
      << found[0].reason;
  const std::vector<std::string> epochs{"eval.every=1", "train.max_steps=0", "train.max_epochs=3"};
  EXPECT_EQ(codes_of(lint_of(epochs)), std::vector<std::string>{"EV004"});
  for (const auto& finding : lint_of(epochs, {.training_bytes = 1'000'000})) {
    EXPECT_NE(finding.code, "EV004") << finding.reason;
  }
}

}  // namespace
}  // namespace stretto::lint
