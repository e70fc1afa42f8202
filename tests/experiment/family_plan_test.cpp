#include "experiment/family_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "experiment/family_spec.h"

namespace stretto::experiment {
namespace {

using Words = std::vector<std::string>;

TEST(ModelShape, IsResizedInMultiples) {
  const ModelShape shape{.widths = {{"model.d_model", 512, 16}, {"model.ffn_dim", 2048, 8}},
                         .depths = {{"model.num_layers", 6, 1}}};
  EXPECT_EQ(resized(shape, 1, 1),
            (Words{"model.d_model=512", "model.ffn_dim=2048", "model.num_layers=6"}));
  EXPECT_EQ(resized(shape, 0.7, 0.5),
            (Words{"model.d_model=352", "model.ffn_dim=1432", "model.num_layers=3"}));
  EXPECT_EQ(resized(shape, 0.001, 0.001),
            (Words{"model.d_model=16", "model.ffn_dim=8", "model.num_layers=1"}));
}

TEST(ModelShape, HasNoFewerLayersThanItsListsHaveEntries) {
  const ModelShape shape{.widths = {}, .depths = {{"model.encoder.num_layers", 7, 1, 5}}};
  EXPECT_EQ(resized(shape, 1, 0.5), (Words{"model.encoder.num_layers=5"}));
  EXPECT_EQ(resized(shape, 1, 2), (Words{"model.encoder.num_layers=14"}));
}

TEST(ModelShape, IsNarrowedInProportion) {
  const ModelShape shape{.widths = {{"model.d_model", 512, 16}, {"model.ffn_dim", 2048, 8}},
                         .depths = {{"model.num_layers", 6, 1}}};
  EXPECT_EQ(narrowed(shape, 0.5),
            (Words{"model.d_model=256", "model.ffn_dim=1024", "model.num_layers=6"}));
}

TEST(ModelShape, AWidthThatIsFarTooLargeDoesNotTakeTheOthersWithIt) {
  const ModelShape shape{.widths = {{"encoder.ffn_dim", 1'000'000, 8},
                                    {"decoder.ffn_dim", 128, 8},
                                    {"d_model", 64, 8}},
                         .depths = {}};
  EXPECT_EQ(narrowed(shape, 0.064),
            (Words{"encoder.ffn_dim=64000", "decoder.ffn_dim=128", "d_model=64"}));
  // Once it has come down to them, all go on together.
  EXPECT_EQ(narrowed(shape, 0.000064),
            (Words{"encoder.ffn_dim=64", "decoder.ffn_dim=64", "d_model=32"}));
  const ModelShape wide{.widths = {{"encoder.ffn_dim", 2048, 8}, {"d_model", 65536, 16}},
                        .depths = {}};
  EXPECT_EQ(narrowed(wide, 0.125), (Words{"encoder.ffn_dim=2048", "d_model=8192"}));
}

TEST(ModelShape, EveryFamilyOfTheProgramHasOne) {
  for (const auto& family : families()) {
    if (!family.plan) continue;
    EXPECT_NE(family.plan->shape, nullptr) << family.options.name;
  }
}

}  // namespace
}  // namespace stretto::experiment
