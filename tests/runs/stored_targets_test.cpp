#include "runs/stored_targets.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/base/failure.h"

namespace stretto::runs {
namespace {

using stretto::testing::failure;

/// A file in memory, with tensors that count from 0.
class StoredTargetsTest : public ::testing::Test {
 protected:
  store::TensorView stored(const std::string& name, std::vector<int64_t> shape,
                           store::DType dtype = store::DType::kF32) {
    return {name,
            dtype,
            std::move(shape),
            {reinterpret_cast<const char*>(numbers_.data()), numbers_.size() * sizeof(float)}};
  }
  /// What is wrong with a file of one tensor `w` for a table [3, 2].
  std::string wrong(const store::TensorView& tensor, const MatchedTable* matched = nullptr) {
    const StoredTarget target{"w", "w", torch::zeros({3, 2}), matched};
    const auto problem = mismatch(store::SafetensorsFile({tensor}), target);
    return problem ? problem->what : "";
  }

  std::vector<float> numbers_{0, 1, 2, 3, 4, 5};
};

TEST_F(StoredTargetsTest, ATensorOfAnotherShapeOrTypeDoesNotFit) {
  EXPECT_EQ(wrong(stored("w", {3, 2})), "");
  EXPECT_EQ(wrong(stored("v", {3, 2})), "is missing");
  EXPECT_EQ(wrong(stored("w", {2, 3})), "is [2, 3], the model wants [3, 2]");
  EXPECT_EQ(wrong(stored("w", {3, 2}, store::DType::kF16)), "is F16, expected F32");
}

TEST_F(StoredTargetsTest, AMatchedTableFitsAFileThatHasTheRowsWhichItNames) {
  const MatchedTable last{"w", {-1, 4, 0}}, beyond{"w", {-1, 6, 0}};
  EXPECT_EQ(wrong(stored("w", {6, 2}), &last), "");
  EXPECT_EQ(wrong(stored("w", {6, 2}), &beyond), "is [6, 2], the model wants [7, 2]");
}

TEST_F(StoredTargetsTest, RowsThatMatchAreCopiedAndOthersStay) {
  const MatchedTable matched{"w", {2, -1, 0}};
  const StoredTarget target{"w", "w", torch::full({4, 2}, -1.0F), &matched};
  copy_all(store::SafetensorsFile({stored("w", {3, 2})}), {target});
  EXPECT_TRUE(torch::equal(
      target.values, torch::tensor({{4.0F, 5.0F}, {-1.0F, -1.0F}, {0.0F, 1.0F}, {-1.0F, -1.0F}})))
      << target.values;
}

TEST_F(StoredTargetsTest, AValueThatIsInfiniteOrNaNIsRefusedByTheNameOfItsTensor) {
  const std::vector<StoredTarget> wanted{{"there", "w", torch::zeros({3, 2})}};
  const store::SafetensorsFile file({stored("there", {3, 2}), stored("other", {3, 2})});
  require_finite(file, "here", wanted);
  numbers_.assign(6, 3e38F);
  require_finite(file, "here", wanted);  // their sum is infinite, and they are not
  for (const float value : {NAN, INFINITY, -INFINITY}) {
    numbers_[4] = value;
    const Error error = failure(ExitCode::kNumeric, [&] { require_finite(file, "here", wanted); });
    EXPECT_STREQ(error.what(), "here: `there` has values that are infinite or NaN") << value;
    EXPECT_NE(error.advice().find("train.init_only"), std::string::npos) << error.advice();
  }
  require_finite(file, "here", {});  // what nobody takes may be as it is
}

TEST_F(StoredTargetsTest, TensorsThatNobodyWantsAreWrongUnderThePrefixAlone) {
  const std::vector<StoredTarget> wanted{{"m/w", "w", torch::zeros({3, 2})}};
  require_all_fit(store::SafetensorsFile({stored("m/w", {3, 2}), stored("v/w", {3, 2})}), "here",
                  "m/", wanted);
  failure(ExitCode::kBadData, [&] {
    require_all_fit(store::SafetensorsFile({stored("m/w", {3, 2}), stored("m/v", {3, 2})}), "here",
                    "m/", wanted);
  });
}

}  // namespace
}  // namespace stretto::runs
