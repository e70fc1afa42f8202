#include "runs/tensors_fit.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/base/failure.h"

namespace stretto::runs {
namespace {

using Mismatches = std::vector<TensorMismatch>;

std::string told(const Mismatches& mismatches) {
  return mismatch_error("here", mismatches, "").what();
}

Mismatches of_layers(const std::string& prefix, int layers, const std::string& suffix,
                     const std::string& what) {
  Mismatches mismatches;
  for (int i = 0; i < layers; ++i)
    mismatches.push_back({prefix + std::to_string(i) + suffix, what});
  return mismatches;
}

TEST(TensorsFit, ThoseOfManyLayersAreToldTogether) {
  Mismatches mismatches =
      of_layers("encoder.layers.", 12, ".up.weight", "is [8, 4], the model wants [16, 4]");
  EXPECT_EQ(told(mismatches),
            "here: `encoder.layers.*.up.weight` is [8, 4], the model wants [16, 4] (12 tensors)");
  EXPECT_TRUE(mismatch_error("here", mismatches, "").details().empty());
  mismatches.insert(mismatches.begin(), TensorMismatch{"table", "is missing"});
  mismatches.push_back({"encoder.layers.12.up.weight", "is missing"});
  EXPECT_EQ(told(mismatches),
            "here: `table` is missing; `encoder.layers.*.up.weight` is [8, 4], the model wants "
            "[16, 4] (12 tensors); `encoder.layers.12.up.weight` is missing");
}

TEST(TensorsFit, NumbersThatAllOfThemShareStay) {
  EXPECT_EQ(told(Mismatches{{"encoders.1.layers.0.b", "is missing"},
                            {"encoders.1.layers.10.b", "is missing"}}),
            "here: `encoders.1.layers.*.b` is missing (2 tensors)");
  EXPECT_EQ(told(Mismatches{{"0.b", "is missing"}, {"2.b", "is missing"}}),
            "here: `*.b` is missing (2 tensors)");
}

TEST(TensorsFit, OtherNamesAreToldEachByItself) {
  EXPECT_EQ(told(Mismatches{{"layers.a.b", "is missing"},
                            {"layers.c.b", "is missing"},
                            {"layers.0b.b", "is missing"}}),
            "here: `layers.a.b` is missing; `layers.c.b` is missing; `layers.0b.b` is missing");
}

TEST(TensorsFit, NamesFromOutsideAreNotTakenApart) {
  EXPECT_EQ(told(Mismatches{{"a`.0", "is missing"}, {"a`.1", "is missing"}}),
            "here: `a`.*` is missing (2 tensors)");
}

TEST(TensorsFit, AShapeIsToldWithTheOneThatIsWanted) {
  const store::TensorView stored{"w", store::DType::kF32, {8, 4}, {}};
  EXPECT_EQ(shape_mismatch(&stored, "w", {8, 4}), std::nullopt);
  EXPECT_EQ(shape_mismatch(&stored, "v", {16}),
            (TensorMismatch{"v", "is [8, 4], the model wants [16]"}));
  EXPECT_EQ(shape_mismatch(nullptr, "w", {8, 4}), (TensorMismatch{"w", "is missing"}));
  EXPECT_EQ(unexpected_tensor("w"), (TensorMismatch{"w", "is not in the model"}));
}

TEST(TensorsFit, OfManyTheFirstThreeEntriesAreToldAndAllAreTheDetails) {
  Mismatches mismatches;
  std::vector<std::string> lines;
  for (const char* side : {"a.", "b.", "c.", "d.", "e."}) {
    for (const auto& problem : of_layers(side, 6, "", "is missing")) {
      mismatches.push_back(problem);
      lines.push_back("`" + problem.name + "` is missing");
    }
  }
  const Error error = mismatch_error("here", mismatches, "mend it");
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
