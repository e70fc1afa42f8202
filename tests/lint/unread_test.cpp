#include <gtest/gtest.h>

#include "tests/lint/sound_config.h"

namespace stretto::lint {
namespace {

using testing::kTensors;
using testing::lint_of;

TEST(Unread, NoiseOnFrozenTensorsIsFoundWhereNoOtherTensorHasIt) {
  const auto keys = [](std::vector<std::string> overrides) {
    overrides.push_back("optim.weight_noise=0.1");
    std::vector<std::string> found;
    for (const auto& finding : lint_of(overrides, {.tensors = kTensors})) {
      EXPECT_EQ(finding.code, "CF004");
      found.push_back(finding.key + ": " + finding.reason.substr(0, finding.reason.find(" fr")));
    }
    return found;
  };
  using Keys = std::vector<std::string>;
  const std::string encoder = "train.freeze=[\"encoder.*\"]";
  EXPECT_EQ(keys({encoder}), Keys{}) << "the decoder has noise";
  EXPECT_EQ(keys({encoder, "optim.weight_noise_tensors=[\"*.up.weight\"]"}), Keys{});
  EXPECT_EQ(keys({encoder, "optim.weight_noise_tensors=[\"decoder.*\", \"encoder.*.bias\"]"}),
            Keys{"optim.weight_noise_tensors: `encoder.*.bias` matches"});
  // Without patterns it is for the matrices.
  EXPECT_EQ(keys({"train.freeze=[\"*.up.weight\", \"embedding*\"]"}),
            Keys{"optim.weight_noise: every matrix is"});
  // Without the names of the model nobody knows.
  EXPECT_TRUE(
      lint_of({encoder, "optim.weight_noise=0.1", "optim.weight_noise_tensors=[\"encoder.*\"]"})
          .empty());
}

}  // namespace
}  // namespace stretto::lint
