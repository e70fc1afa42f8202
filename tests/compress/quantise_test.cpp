#include "compress/quantise.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>

#include "base/error.h"
#include "store/quantised_file.h"
#include "tests/base/failure.h"
#include "tests/kernels/gradcheck.h"

namespace stretto::compress {
namespace {

using store::QuantFormat;
using store::QuantScope;
using stretto::testing::noise;

constexpr QuantFormat kFours{.bits = 4, .scope = QuantScope::kGroup, .group_size = 16};

double distance(const at::Tensor& weight, const store::QuantisedTensor& packed) {
  return (dequantise(packed.view()) - weight).norm().item<double>() / weight.norm().item<double>();
}

store::TensorView view_of_weight(const std::string& name, const at::Tensor& weight) {
  return {name,
          store::DType::kF32,
          weight.sizes().vec(),
          {static_cast<const char*>(weight.const_data_ptr()), weight.nbytes()}};
}

TEST(Quantise, ErrorFallsWithBitsAndWithSmallerGroups) {
  const at::Tensor weight = noise({24, 64});
  double before = std::numeric_limits<double>::infinity();
  for (const int64_t bits : {2, 3, 4, 6, 8}) {
    const auto packed = quantise(weight, {.bits = bits}, Rounding::kLeastError, "w");
    const double error = distance(weight, packed);
    EXPECT_LT(error, before / 1.5) << bits;
    before = error;
  }
  EXPECT_LT(before, 0.01) << "8 bits";
  const QuantFormat whole{.bits = 4, .scope = QuantScope::kTensor}, rows{.bits = 4};
  const double of_whole = distance(weight, quantise(weight, whole, Rounding::kNearest, "w"));
  const double of_rows = distance(weight, quantise(weight, rows, Rounding::kNearest, "w"));
  const double of_groups = distance(weight, quantise(weight, kFours, Rounding::kNearest, "w"));
  EXPECT_LT(of_rows, of_whole);
  EXPECT_LT(of_groups, of_rows);
}

TEST(Quantise, NearestIsWhatPackingLeaves) {
  const at::Tensor weight = noise({6, 4, 8}, 3);
  for (const int64_t bits : {2, 3, 4, 6, 8}) {
    for (const bool symmetric : {true, false}) {
      for (const auto scope : {QuantScope::kTensor, QuantScope::kRow, QuantScope::kGroup}) {
        const QuantFormat format{.bits = bits,
                                 .symmetric = symmetric,
                                 .scope = scope,
                                 .group_size = scope == QuantScope::kGroup ? 8 : 0};
        const auto packed = quantise(weight, format, Rounding::kNearest, "w");
        EXPECT_TRUE(at::equal(nearest(weight, format), dequantise(packed.view())));
        EXPECT_EQ(store::bytes_problem(packed.view()), "");
      }
    }
  }
}

TEST(Quantise, RoundedWeightsStayAsTheyAre) {
  const QuantFormat format{.bits = 6};
  const at::Tensor once = nearest(noise({8, 32}), format);
  EXPECT_TRUE(at::equal(nearest(once, format), once));
}

TEST(Quantise, ZerosStayZero) {
  const at::Tensor weight = noise({16, 32}, 5).abs();
  weight.masked_fill_(noise({16, 32}, 6) > 0, 0);
  for (const bool symmetric : {true, false}) {
    for (const auto rounding : {Rounding::kNearest, Rounding::kLeastError}) {
      const QuantFormat format{.bits = 3, .symmetric = symmetric};
      const at::Tensor back = dequantise(quantise(weight, format, rounding, "w").view());
      EXPECT_EQ(back.masked_select(weight == 0).abs().max().item<float>(), 0);
    }
  }
}

TEST(Quantise, ThreadsChangeNothing) {
  const at::Tensor weight = noise({300, 128});
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = quantise(weight, kFours, Rounding::kLeastError, "w");
  at::set_num_threads(2);
  const auto two = quantise(weight, kFours, Rounding::kLeastError, "w");
  at::set_num_threads(before);
  EXPECT_EQ(one.codes, two.codes);
  EXPECT_EQ(one.scales, two.scales);
}

TEST(Quantise, WeightsThatNobodyCanPackAreRefused) {
  at::Tensor weight = noise({2, 16});
  weight[1][3] = std::numeric_limits<float>::infinity();
  const auto infinite = stretto::testing::failure(
      ExitCode::kNumeric, [&] { quantise(weight, kFours, Rounding::kNearest, "w"); });
  EXPECT_EQ(std::string(infinite.what()), "`w` has values that are infinite or NaN");
  weight[1][3] = 1e30;
  stretto::testing::failure(ExitCode::kBadData,
                            [&] { quantise(weight, kFours, Rounding::kLeastError, "w"); });
  EXPECT_THROW(quantise(noise({2, 20}), kFours, Rounding::kNearest, "w"), c10::Error);
  EXPECT_THROW(quantise(noise({2, 16}), kFours, Rounding::kCalibrated, "w"), c10::Error);
}

TEST(Quantise, AModelHasPackedTensorsAndTheRest) {
  const at::Tensor matrix = noise({8, 32}), table = noise({10, 16}, 8), bias = noise({8}, 9);
  const store::SafetensorsFile file({view_of_weight("map.weight", matrix),
                                     view_of_weight("table", table),
                                     view_of_weight("map.bias", bias)});
  const auto plan = store::plan_quantised(
      file.tensors(), {.format = kFours, .others = {{"table", {.bits = 8}}}}, "the model");
  const QuantisedModel model = quantise_model(file, plan, Rounding::kLeastError);
  ASSERT_EQ(model.packed.size(), 2U);
  ASSERT_EQ(model.kept.size(), 1U);
  EXPECT_EQ(model.kept[0].name, "map.bias");
  EXPECT_EQ(model.metadata(), plan.metadata());
  EXPECT_GT(model.errors.at("map.weight"), model.errors.at("table"));
  const store::SafetensorsFile stored(model.tensors(),
                                      {{std::string(store::kQuantisedKey), model.metadata()}});
  const store::QuantisedTensors packed(stored, "stored");
  ASSERT_NE(packed.find("table"), nullptr);
  EXPECT_NEAR(distance(table, model.packed.at("table")), model.errors.at("table"), 1e-6);
  EXPECT_EQ(packed.find("map.weight")->format, kFours);
}

TEST(Quantise, AFileHasThePlannedSizeWhateverTheOrderOfNames) {
  const at::Tensor small = noise({2, 16}), large = noise({300, 64}, 8), bias = noise({8}, 9);
  const store::SafetensorsFile file(
      {view_of_weight("z", small), view_of_weight("a", large), view_of_weight("m.bias", bias)});
  const auto plan = store::plan_quantised(file.tensors(), {.format = {.bits = 8}}, "the model");
  const QuantisedModel model = quantise_model(file, plan, Rounding::kNearest);
  // The header is filled up to 64 bytes: a digit more in an offset shows at one of these lengths.
  for (size_t length = 0; length < 64; ++length) {
    const std::map<std::string, std::string> metadata{
        {"run_id", std::string(length, 'r')},
        {std::string(store::kQuantisedKey), model.metadata()}};
    EXPECT_EQ(store::safetensors_file_bytes(model.tensors(), metadata), plan.file_bytes(metadata))
        << length;
  }
}

}  // namespace
}  // namespace stretto::compress
