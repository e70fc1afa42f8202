#include "runs/tensors_fit.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/base/failure.h"

namespace stretto::runs {
namespace {

using Misfits = std::vector<TensorMisfit>;

std::string told(const Misfits& misfits) {
  return misfits_error("here", misfits, "").what();
}

Misfits of_layers(const std::string& prefix, int layers, const std::string& suffix,
                  const std::string& what) {
  Misfits misfits;
  for (int i = 0; i < layers; ++i) misfits.push_back({prefix + std::to_string(i) + suffix, what});
  return misfits;
}

TEST(TensorsFit, ThoseOfManyLayersAreToldTogether) {
  Misfits misfits =
      of_layers("encoder.layers.", 12, ".up.weight", "is [8, 4], the model wants [16, 4]");
  EXPECT_EQ(told(misfits),
            "here: `encoder.layers.*.up.weight` is [8, 4], the model wants [16, 4] (12 tensors)");
  EXPECT_TRUE(misfits_error("here", misfits, "").details().empty());
  misfits.insert(misfits.begin(), TensorMisfit{"table", "is missing"});
  misfits.push_back({"encoder.layers.12.up.weight", "is missing"});
  EXPECT_EQ(told(misfits),
            "here: `table` is missing; `encoder.layers.*.up.weight` is [8, 4], the model wants "
            "[16, 4] (12 tensors); `encoder.layers.12.up.weight` is missing");
}

TEST(TensorsFit, NumbersThatAllOfThemShareStay) {
  EXPECT_EQ(told(Misfits{{"encoders.1.layers.0.b", "is missing"},
                         {"encoders.1.layers.10.b", "is missing"}}),
            "here: `encoders.1.layers.*.b` is missing (2 tensors)");
  EXPECT_EQ(told(Misfits{{"0.b", "is missing"}, {"2.b", "is missing"}}),
            "here: `*.b` is missing (2 tensors)");
}

TEST(TensorsFit, OtherNamesAreToldEachByItself) {
  EXPECT_EQ(told(Misfits{{"layers.a.b", "is missing"},
                         {"layers.c.b", "is missing"},
                         {"layers.0b.b", "is missing"}}),
            "here: `layers.a.b` is missing; `layers.c.b` is missing; `layers.0b.b` is missing");
}

TEST(TensorsFit, NamesFromOutsideAreNotTakenApart) {
  EXPECT_EQ(told(Misfits{{"a`.0", "is missing"}, {"a`.1", "is missing"}}),
            "here: `a`.*` is missing (2 tensors)");
}

TEST(TensorsFit, AShapeIsToldWithTheOneThatIsWanted) {
  const store::TensorView stored{"w", store::DType::kF32, {8, 4}, {}};
  EXPECT_EQ(shape_misfit(&stored, "w", {8, 4}), std::nullopt);
  EXPECT_EQ(shape_misfit(&stored, "v", {16}),
            (TensorMisfit{"v", "is [8, 4], the model wants [16]"}));
  EXPECT_EQ(shape_misfit(nullptr, "w", {8, 4}), (TensorMisfit{"w", "is missing"}));
  EXPECT_EQ(extra_misfit("w"), (TensorMisfit{"w", "is not in the model"}));
}

TEST(TensorsFit, OfManyTheFirstThreeEntriesAreToldAndAllAreTheDetails) {
  Misfits misfits;
  std::vector<std::string> lines;
  for (const char* side : {"a.", "b.", "c.", "d.", "e."}) {
    for (const auto& misfit : of_layers(side, 6, "", "is missing")) {
      misfits.push_back(misfit);
      lines.push_back("`" + misfit.name + "` is missing");
    }
  }
  const Error error = misfits_error("here", misfits, "mend it");
  EXPECT_EQ(error.code(), ExitCode::kBadData);
  EXPECT_EQ(error.message(),
            "here: `a.*` is missing (6 tensors); `b.*` is missing (6 tensors); `c.*` is missing "
            "(6 tensors); and 12 tensors more\n  mend it");
  EXPECT_EQ(error.details(), lines);
}

TEST(TensorsFit, NoneIsNoError) {
  require_fit({}, "here");
  const Error error = stretto::testing::failure(ExitCode::kBadData, [] {
    require_fit({{"a", "is missing"}}, "here");
  });
  EXPECT_EQ(std::string(error.what()),
            "here: the checkpoint does not fit this model: `a` is missing");
}

}  // namespace
}  // namespace stretto::runs
