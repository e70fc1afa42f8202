#include "store/quantised.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace stretto::store {
namespace {

constexpr QuantFormat kRows8{.bits = 8};
constexpr QuantFormat kGroups4{.bits = 4, .scope = QuantScope::kGroup, .group_size = 4};

QuantFormat quantised_rows(int64_t bits, bool symmetric = true) {
  return {.bits = bits, .symmetric = symmetric};
}

/// Every code that the format has, over and over.
QuantisedValues all_quantised_codes(const QuantFormat& format, const std::vector<int64_t>& shape) {
  const QuantLayout layout = layout_of(format, shape);
  QuantisedValues values;
  int64_t code = format.lowest_code();
  for (int64_t i = 0; i < layout.rows * layout.columns; ++i) {
    values.codes.push_back(static_cast<int8_t>(code));
    code = code == format.highest() ? format.lowest_code() : code + 1;
  }
  for (int64_t i = 0; i < layout.num_scales(); ++i) {
    values.scales.push_back(0.25F * static_cast<float>(i + 1));
    if (!format.symmetric) values.zeros.push_back(static_cast<int8_t>(format.lowest()));
  }
  return values;
}

TEST(Quantised, EveryCodeOfEveryFormatComesBack) {
  for (const int64_t bits : {2, 3, 4, 6, 8}) {
    for (const bool symmetric : {true, false}) {
      for (const int64_t columns : {1, 5, 8, 33, 300}) {
        SCOPED_TRACE(std::to_string(bits) + " bits, " + std::to_string(columns) + " columns");
        const QuantFormat format = quantised_rows(bits, symmetric);
        const std::vector<int64_t> shape{3, columns};
        const QuantisedValues values = all_quantised_codes(format, shape);
        const QuantisedTensor packed = pack(format, shape, values);
        EXPECT_EQ(packed.codes.size(), static_cast<size_t>(3 * ((columns * bits + 7) / 8)));
        EXPECT_EQ(bytes_problem(packed.view()), "");
        const QuantisedValues back = unpack(packed.view());
        EXPECT_EQ(back.codes, values.codes);
        EXPECT_EQ(back.scales, values.scales);
        EXPECT_EQ(back.zeros, values.zeros);
      }
    }
  }
}

TEST(Quantised, BytesHaveTheFirstCodeInTheLowestBits) {
  // 3 bits: codes -4, -3, 3 are stored as 0, 1, 7.
  const QuantisedTensor packed =
      pack(quantised_rows(3), {1, 3}, {.codes = {-4, -3, 3}, .scales = {1}});
  ASSERT_EQ(packed.codes.size(), 2U);
  EXPECT_EQ(static_cast<unsigned char>(packed.codes[0]), 0b11001000);
  EXPECT_EQ(static_cast<unsigned char>(packed.codes[1]), 0b1);
}

TEST(Quantised, WeightsAreScaleTimesCodeLessZero) {
  QuantFormat format = kGroups4;
  format.symmetric = false;
  const QuantisedTensor packed = pack(
      format, {1, 8}, {.codes = {-8, 0, 7, 1, 2, 2, 2, 2}, .scales = {0.5F, -2}, .zeros = {-8, 1}});
  std::vector<float> weights(8);
  dequantise_rows(packed.view(), 0, 1, weights);
  EXPECT_EQ(weights, (std::vector<float>{0, 4, 7.5F, 4.5F, -2, -2, -2, -2}));
}

TEST(Quantised, RowsAreUnpackedByThemselves) {
  const QuantisedValues values = all_quantised_codes(kGroups4, {4, 12});
  const QuantisedTensor packed = pack(kGroups4, {4, 12}, values);
  std::vector<int8_t> codes(24);
  unpack_rows(packed.view(), 1, 2, codes);
  EXPECT_TRUE(std::equal(codes.begin(), codes.end(), values.codes.begin() + 12));
  std::vector<float> all(48), some(24);
  dequantise_rows(packed.view(), 0, 4, all);
  dequantise_rows(packed.view(), 1, 2, some);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + 12));
  EXPECT_THROW(unpack_rows(packed.view(), 3, 2, codes), std::invalid_argument);
}

TEST(Quantised, SizesCountScalesAndZeros) {
  const QuantLayout rows = layout_of(kRows8, {10, 64});
  EXPECT_EQ(rows.bytes(), 10U * 64 + 10 * 2);
  EXPECT_DOUBLE_EQ(rows.bits_per_weight(), 8 + 16.0 / 64);
  QuantFormat groups{.bits = 4, .symmetric = false, .scope = QuantScope::kGroup, .group_size = 32};
  EXPECT_DOUBLE_EQ(layout_of(groups, {10, 64}).bits_per_weight(), 4 + (16 + 8) / 32.0);
  const QuantLayout whole = layout_of({.bits = 2, .scope = QuantScope::kTensor}, {4, 3, 2});
  EXPECT_EQ(whole.columns, 6) << "all dimensions but the first";
  EXPECT_EQ(whole.num_scales(), 1);
  EXPECT_EQ(whole.bytes(), 4U * 2 + 2);
}

TEST(Quantised, WhatCannotBePackedIsSaid) {
  EXPECT_EQ(packing_problem({.bits = 5}, {4, 4}), "5 bits: 2, 3, 4, 6 or 8 are possible");
  const QuantFormat of_32{.bits = 4, .scope = QuantScope::kGroup, .group_size = 32};
  EXPECT_EQ(packing_problem(of_32, {4, 100}), "groups of 32 do not divide its 100 columns");
  EXPECT_EQ(packing_problem(of_32, {4, 96}), "");
  EXPECT_NE(packing_problem(kRows8, {4}), "");
  EXPECT_NE(packing_problem(kRows8, {0, 4}), "");
  EXPECT_NE(packing_problem(kRows8, {4, -1}), "");
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_NE(packing_problem(kRows8, {kHuge, kHuge}), "");
  EXPECT_NE(packing_problem(kRows8, {1, kHuge}), "");
  EXPECT_NE(packing_problem({.bits = 8, .group_size = 32}, {4, 32}), "") << "no groups";
  EXPECT_NE(packing_problem({.bits = 4, .scope = QuantScope::kGroup}, {4, 32}), "");
  EXPECT_THROW(layout_of(of_32, {4, 100}), std::invalid_argument);
}

TEST(Quantised, CodesThatTheFormatLacksAreNotPacked) {
  EXPECT_THROW(pack(kRows8, {1, 2}, {.codes = {0, -128}, .scales = {1}}), std::invalid_argument);
  EXPECT_THROW(pack(quantised_rows(4), {1, 2}, {.codes = {0, 8}, .scales = {1}}),
               std::invalid_argument);
  EXPECT_THROW(pack(quantised_rows(4), {1, 2}, {.codes = {0, 1}, .scales = {0.1F}}),
               std::invalid_argument)
      << "0.1 is no number of fp16";
  EXPECT_THROW(pack(quantised_rows(4), {1, 2}, {.codes = {0}, .scales = {1}}),
               std::invalid_argument);
  EXPECT_THROW(pack(quantised_rows(4, false), {1, 2}, {.codes = {0, 1}, .scales = {1}}),
               std::invalid_argument)
      << "no zeros";
}

TEST(Quantised, BytesThatNoPackerWroteAreFound) {
  const QuantFormat format = quantised_rows(3, false);
  const QuantisedTensor sound = pack(format, {2, 3}, all_quantised_codes(format, {2, 3}));
  const auto problem = [](QuantisedTensor packed, const auto& change) {
    change(packed);
    return bytes_problem(packed.view());
  };
  EXPECT_EQ(bytes_problem(sound.view()), "");
  EXPECT_EQ(problem(sound, [](QuantisedTensor& t) { t.codes.pop_back(); }),
            "`codes` has 3 bytes, 4 are needed");
  EXPECT_NE(problem(sound, [](QuantisedTensor& t) { t.scales += 'x'; }), "");
  EXPECT_NE(problem(sound, [](QuantisedTensor& t) { t.zeros.clear(); }), "");
  EXPECT_EQ(problem(sound, [](QuantisedTensor& t) { t.scales[1] = '\x7C'; }),
            "a scale is infinite or NaN");
  EXPECT_EQ(problem(sound, [](QuantisedTensor& t) { t.zeros[0] = '\x08'; }),
            "a zero is beyond its bits");
  EXPECT_EQ(problem(sound, [](QuantisedTensor& t) { t.codes[3] = '\x02'; }),
            "a row has bits behind its last code");
  const QuantisedTensor bytes = pack(kRows8, {1, 2}, {.codes = {1, 2}, .scales = {1}});
  EXPECT_EQ(problem(bytes, [](QuantisedTensor& t) { t.codes[0] = '\0'; }),
            "a code is -128, which symmetric codes are not");
}

TEST(Quantised, HalvesAreThoseOfIeee) {
  for (uint32_t half = 0; half <= 0xFFFF; ++half) {
    const float value = float_of_half(static_cast<uint16_t>(half));
    if (std::isnan(value)) continue;
    ASSERT_EQ(half_of(value), half);
  }
  EXPECT_EQ(float_of_half(half_of(1.0F + 0x1p-11F)), 1.0F) << "a tie goes to the even one";
  EXPECT_EQ(float_of_half(half_of(1.0F + 0x3p-11F)), 1.0F + 0x1p-9F);
  EXPECT_EQ(float_of_half(half_of(65519)), 65504);
  EXPECT_TRUE(std::isinf(float_of_half(half_of(65520))));
  EXPECT_TRUE(std::isnan(float_of_half(half_of(std::nanf("")))));
  EXPECT_EQ(float_of_half(half_of(0x1p-24F)), 0x1p-24F);
  EXPECT_EQ(float_of_half(half_of(0x1p-25F)), 0) << "a tie, to the even 0";
  EXPECT_TRUE(std::signbit(float_of_half(half_of(-0.0F))));
}

}  // namespace
}  // namespace stretto::store
