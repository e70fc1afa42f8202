#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "compress/quantise.h"
#include "tests/base/failure.h"
#include "tests/kernels/gradcheck.h"

namespace stretto::compress {
namespace {

using store::QuantFormat;
using store::QuantScope;
using stretto::testing::noise;

constexpr int64_t kIn = 64, kOut = 24;

/// Inputs that depend on each other, as those of a network do: most of them lies in few directions.
at::Tensor dependent_inputs(int64_t rows) {
  return noise({rows, 12}, 1).matmul(noise({12, kIn}, 2)) + 0.1 * noise({rows, kIn}, 3);
}

RowInputs inputs_of(const at::Tensor& x, int64_t from, int64_t count) {
  RowInputs inputs{.from = from, .count = count, .num_rows = x.size(0)};
  inputs.moments = x.t().matmul(x);
  return inputs;
}

/// By how much the outputs change, relative to the outputs.
double output_error(const at::Tensor& x, const at::Tensor& weight,
                    const store::QuantisedTensor& packed) {
  const at::Tensor change = x.matmul((dequantise(packed.view()) - weight).t());
  return change.norm().item<double>() / x.matmul(weight.t()).norm().item<double>();
}

TEST(QuantiseCalibrated, KeepsOutputsBetterThanTheLeastErrorOfWeights) {
  const at::Tensor x = dependent_inputs(512), weight = noise({kOut, kIn}, 4);
  for (const int64_t bits : {2, 3, 4}) {
    for (const auto scope : {QuantScope::kTensor, QuantScope::kRow, QuantScope::kGroup}) {
      for (const bool symmetric : {true, false}) {
        const QuantFormat format{.bits = bits,
                                 .symmetric = symmetric,
                                 .scope = scope,
                                 .group_size = scope == QuantScope::kGroup ? 32 : 0};
        SCOPED_TRACE(store::text_of(format));
        const auto least = quantise(weight, format, Rounding::kLeastError, "w");
        const auto calibrated =
            quantise_calibrated(weight, format, {inputs_of(x, 0, kOut)}, {}, "w");
        EXPECT_EQ(store::bytes_problem(calibrated.view()), "");
        EXPECT_LT(output_error(x, weight, calibrated), 0.9 * output_error(x, weight, least));
      }
    }
  }
}

TEST(QuantiseCalibrated, WithIndependentInputsIsRoundingToNearest) {
  const at::Tensor weight = noise({kOut, kIn}, 4);
  RowInputs inputs{.from = 0, .count = kOut, .num_rows = 100};
  inputs.moments = at::eye(kIn) * 3;
  const QuantFormat format{.bits = 4};
  const auto calibrated = quantise_calibrated(weight, format, {inputs}, {}, "w");
  const auto least = quantise(weight, format, Rounding::kLeastError, "w");
  EXPECT_EQ(calibrated.codes, least.codes);
  EXPECT_EQ(calibrated.scales, least.scales);
}

TEST(QuantiseCalibrated, RowsWithoutInputsGetTheLeastError) {
  const at::Tensor x = dependent_inputs(256), weight = noise({kOut, kIn}, 4);
  const QuantFormat format{.bits = 3};
  const auto least = quantise(weight, format, Rounding::kLeastError, "w");
  const auto none = quantise_calibrated(weight, format, {}, {}, "w");
  EXPECT_EQ(none.codes, least.codes);
  const auto some = quantise_calibrated(weight, format, {inputs_of(x, 8, 8)}, {}, "w");
  const at::Tensor a = dequantise(some.view()), b = dequantise(least.view());
  EXPECT_TRUE(at::equal(a.narrow(0, 0, 8), b.narrow(0, 0, 8)));
  EXPECT_TRUE(at::equal(a.narrow(0, 16, 8), b.narrow(0, 16, 8)));
  EXPECT_FALSE(at::equal(a.narrow(0, 8, 8), b.narrow(0, 8, 8)));
  const auto all = quantise_calibrated(weight, format, {inputs_of(x, 0, kOut)}, {}, "w");
  EXPECT_TRUE(at::equal(dequantise(all.view()).narrow(0, 8, 8), a.narrow(0, 8, 8)))
      << "a row does not depend on others";
}

TEST(QuantiseCalibrated, InputsThatAreAlwaysZeroDoNoHarm) {
  at::Tensor x = dependent_inputs(256);
  x.narrow(1, 10, 5).zero_();
  const at::Tensor weight = noise({kOut, kIn}, 4);
  const QuantFormat format{.bits = 4};
  const auto packed = quantise_calibrated(weight, format, {inputs_of(x, 0, kOut)}, {}, "w");
  EXPECT_LT(output_error(x, weight, packed), 0.15);
  const at::Tensor back = dequantise(packed.view()).narrow(1, 10, 5);
  EXPECT_LT((back - weight.narrow(1, 10, 5)).abs().max().item<double>(), 2);
  const auto dark =
      quantise_calibrated(weight, format, {inputs_of(at::zeros({9, kIn}), 0, kOut)}, {}, "w");
  EXPECT_EQ(dark.codes, quantise(weight, format, Rounding::kLeastError, "w").codes);
}

TEST(QuantiseCalibrated, FewerRowsThanInputsAreEnough) {
  const at::Tensor x = noise({8, kIn}, 1), weight = noise({kOut, kIn}, 4);
  const QuantFormat format{.bits = 4};
  const auto packed = quantise_calibrated(weight, format, {inputs_of(x, 0, kOut)}, {}, "w");
  const auto least = quantise(weight, format, Rounding::kLeastError, "w");
  EXPECT_LT(output_error(x, weight, packed), output_error(x, weight, least));
}

TEST(QuantiseCalibrated, WhatWasPrunedStaysZero) {
  const at::Tensor x = dependent_inputs(256);
  at::Tensor weight = noise({kOut, kIn}, 4);
  weight.masked_fill_(noise({kOut, kIn}, 5) > 0.5, 0);
  for (const bool symmetric : {true, false}) {
    const QuantFormat format{.bits = 4, .symmetric = symmetric};
    const auto packed = quantise_calibrated(weight, format, {inputs_of(x, 0, kOut)}, {}, "w");
    const at::Tensor back = dequantise(packed.view());
    EXPECT_EQ(back.masked_select(weight == 0).abs().max().item<float>(), 0);
  }
}

TEST(QuantiseCalibrated, ThreadsChangeNothing) {
  const at::Tensor x = dependent_inputs(256), weight = noise({200, kIn}, 4);
  const QuantFormat format{.bits = 3};
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = quantise_calibrated(weight, format, {inputs_of(x, 0, 200)}, {}, "w");
  at::set_num_threads(2);
  const auto two = quantise_calibrated(weight, format, {inputs_of(x, 0, 200)}, {}, "w");
  EXPECT_EQ(at::get_num_threads(), 2) << "as it was";
  at::set_num_threads(before);
  EXPECT_EQ(one.codes, two.codes);
  EXPECT_EQ(one.scales, two.scales);
}

TEST(QuantiseCalibrated, InputsThatNoLayerHasAreRefused) {
  const at::Tensor weight = noise({kOut, kIn}, 4);
  const QuantFormat format{.bits = 4};
  const auto with = [&](const RowInputs& inputs) {
    quantise_calibrated(weight, format, {inputs}, {}, "w");
  };
  RowInputs infinite = inputs_of(noise({9, kIn}), 0, kOut);
  infinite.moments[3][3] = std::numeric_limits<float>::infinity();
  stretto::testing::failure(ExitCode::kNumeric, [&] { with(infinite); });
  EXPECT_THROW(with(inputs_of(noise({9, kIn}), 0, kOut + 1)), c10::Error);
  EXPECT_THROW(with(inputs_of(noise({9, kIn - 1}), 0, kOut)), c10::Error);
}

}  // namespace
}  // namespace stretto::compress
