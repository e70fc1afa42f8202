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
}

}  // namespace
}  // namespace stretto::lint
