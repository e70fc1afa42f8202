#include "experiment/family_export.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/base/failure.h"

namespace stretto::experiment {
namespace {

using stretto::testing::failure;

TEST(StoredWeights, AutoFollowsTheRun) {
  const ExportFormat both{.name = "ctranslate2",
                          .weights = {StoredWeights::kFloat32, StoredWeights::kInt8}};
  const ExportFormat one{.name = "onnx"};
  EXPECT_EQ(choose_stored_weights("auto", false, both), StoredWeights::kFloat32);
  EXPECT_EQ(choose_stored_weights("auto", true, both), StoredWeights::kInt8);
  EXPECT_EQ(choose_stored_weights("auto", true, one), StoredWeights::kFloat32);
  EXPECT_EQ(choose_stored_weights("int8", false, both), StoredWeights::kInt8);
}

TEST(StoredWeights, WhatAFormatLacksIsRefused) {
  const ExportFormat both{.name = "ctranslate2",
                          .weights = {StoredWeights::kFloat32, StoredWeights::kInt8}};
  const auto error =
      failure(ExitCode::kUsage, [&] { choose_stored_weights("float16", false, both); });
  EXPECT_NE(error.message().find("weights for it: float32, int8"), std::string::npos);
}

TEST(StoredWeights, EachHasAValueOfItsOption) {
  for (const auto one : {StoredWeights::kFloat32, StoredWeights::kFloat16, StoredWeights::kInt8}) {
    EXPECT_EQ(std::ranges::count(stored_weights_names(), name_of_weights(one)), 1)
        << name_of_weights(one);
  }
}

}  // namespace
}  // namespace stretto::experiment
