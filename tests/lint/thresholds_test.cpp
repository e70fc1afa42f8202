#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/lint/sound_config.h"

namespace stretto::lint {
namespace {

using testing::codes_of;
using testing::lint_of;

/// Both sides of the bound at which a rule speaks.
struct Bound {
  const char* code;
  std::vector<std::string> quiet, noted;
};

// The run has 9,000 updates, and its warm-up 4,000.
TEST(LintThresholds, EachRuleBeginsWhereItSays) {
  const std::string linear = "schedule.name=linear", save = "train.save_every=";
  const std::string average = "train.average_last=5", half = "train.precision=mixed_fp16",
                    fixed = "train.loss_scale.name=static", scale = "train.loss_scale.init=";
  const std::vector<Bound> bounds{
      // A hundredth of the run.
      {"SC002", {linear, "schedule.total_steps=9090"}, {linear, "schedule.total_steps=9091"}},
      // The first of five is that of update 4,000, and of 3,996.
      {"LB013", {average, save + "1250"}, {average, save + "1251"}},
      {"MP002", {half, fixed, scale + "32768"}, {half, fixed, scale + "32769"}},
      {"EV004", {"eval.every=20"}, {"eval.every=19"}},
      {"EV002", {"eval.every=9000"}, {"eval.every=9001"}},
      {"CK001", {save + "9000"}, {save + "9001"}},
      {"LB015", {"schedule.warmup_steps=6750"}, {"schedule.warmup_steps=6751"}},
      {"DP002", {"dist.bucket_bytes=65536"}, {"dist.bucket_bytes=65535"}},
  };
  for (const auto& [code, quiet, noted] : bounds) {
    const auto count = [&, of = code](const std::vector<std::string>& overrides) {
      const auto codes = codes_of(lint_of(overrides));
      return std::count(codes.begin(), codes.end(), of);
    };
    EXPECT_EQ(count(quiet), 0) << code;
    EXPECT_EQ(count(noted), 1) << code;
  }
}

}  // namespace
}  // namespace stretto::lint
