#include <gtest/gtest.h>

#include "tests/lint/sound_config.h"

namespace stretto::lint {
namespace {

using testing::codes_of;
using testing::kTensors;
using testing::lint_of;

TEST(Decay, IsJudgedByThePatterns) {
  const auto decays = [](const char* patterns) {
    const auto codes = codes_of(
        lint_of({"optim.name=adamw", "optim.weight_decay=0.1", patterns}, {.tensors = kTensors}));
    return codes == std::vector<std::string>{"LB009"};
  };
  EXPECT_TRUE(decays("optim.no_decay=[\"*.bias\"]"));  // norms have a weight too
  EXPECT_TRUE(decays("optim.no_decay=[\"*embedding*\"]"));
  EXPECT_FALSE(decays("optim.no_decay=[\"*\"]"));
  EXPECT_TRUE(decays("optim.groups=[\"*norm* weight_decay=0.1\"]"));
  EXPECT_FALSE(decays("optim.groups=[\"*norm* lr_scale=0.1\"]"));
  // What leaves norms alone when matrices match as well.
  EXPECT_FALSE(decays("optim.groups=[\"encoder.* weight_decay=0.2\"]"));
  EXPECT_FALSE(decays("optim.groups=[\"decoder.* weight_decay=0.2\"]"));
  EXPECT_FALSE(decays("optim.groups=[\"* lr_scale=2 weight_decay=0.2\"]"));
  EXPECT_TRUE(decays("optim.groups=[\"decoder.layers.?.*residual* weight_decay=0.2\"]"));
  EXPECT_TRUE(decays("optim.groups=[\"encoder.layers.5.ffn.up.bias weight_decay=0.2\"]"));
  EXPECT_FALSE(decays("optim.groups=[\"*.bias lr_scale=2\", \"*.bias weight_decay=0.2\"]"));
}

TEST(Decay, OfAGroupIsJudgedByPatternsOfNoDecayToo) {
  // Biases are left out, and the gains that it matches are not.
  const auto found = lint_of({"optim.name=adamw", "optim.no_decay=[\"*.bias\"]",
                              "optim.groups=[\"*norm* weight_decay=0.1\"]"},
                             {.tensors = kTensors});
  ASSERT_EQ(codes_of(found), std::vector<std::string>{"LB009"});
  EXPECT_EQ(found[0].key, "optim.groups");
  EXPECT_NE(found[0].reason.find("self_residual.norm.weight`"), std::string::npos)
      << found[0].reason;
}

TEST(Decay, DoesNotReachWhatIsFrozen) {
  const auto codes = [](const char* frozen) {
    return codes_of(lint_of({"optim.name=adamw", "optim.weight_decay=0.1", frozen,
                             "optim.groups=[\"encoder.*.bias weight_decay=0.1\"]"},
                            {.tensors = kTensors}));
  };
  EXPECT_EQ(codes("train.freeze=[\"encoder.*\"]"), std::vector<std::string>{});
  EXPECT_EQ(codes("train.freeze=[\"decoder.*\"]"), std::vector<std::string>{"LB009"});
}

TEST(Decay, IsNotJudgedWithoutNames) {
  EXPECT_TRUE(
      lint_of({"optim.name=adamw", "optim.weight_decay=0.1", "optim.no_decay=none"}).empty());
}

}  // namespace
}  // namespace stretto::lint
