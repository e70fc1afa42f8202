#include "distributed/process_group.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "distributed/half.h"

namespace stretto::distributed {
namespace {

TEST(ProcessGroup, OfOneDoesEverythingAtOnce) {
  const ProcessGroup group;
  std::vector<float> values{1, 2, 3};
  const std::vector<int64_t> begins{0, 3};
  group.all_reduce(buffer(std::span(values)));
  group.reduce_scatter(buffer(std::span(values)), begins);
  group.all_gather(buffer(std::span(values)), begins);
  group.barrier();
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(group.all_gather_bytes("x"), std::vector<std::string>{"x"});
  EXPECT_EQ(group.duplicate().size(), 1);
  EXPECT_TRUE(group.is_root());
  EXPECT_STREQ(group.name(), "single");
}

TEST(ProcessGroup, ExchangeOfOneCopiesItsOwnPart) {
  std::vector<float> send{1, 2, 3, 4}, receive(2);
  ProcessGroup().exchange(buffer(std::span(send)), buffer(std::span(receive)),
                          std::vector<int64_t>{1, 3});
  EXPECT_EQ(receive, (std::vector<float>{2, 3}));
  EXPECT_THROW(ProcessGroup().exchange(buffer(std::span(send)), buffer(std::span(receive)),
                                       std::vector<int64_t>{0, 3}),
               std::invalid_argument);
}

TEST(ProcessGroup, ElementsHaveTheSizesOfTheirTypes) {
  const std::pair<Element, size_t> table[] = {{Element::kF32, 4},  {Element::kF64, 8},
                                              {Element::kBf16, 2}, {Element::kF16, 2},
                                              {Element::kI64, 8},  {Element::kByte, 1}};
  for (const auto& [element, size] : table) EXPECT_EQ(size_of(element), size);
}

// The value of a half by its definition.
double f16_by_definition(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Half, EveryF16HasItsValueAndComesBack) {
  for (int bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const double expected = f16_by_definition(half);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(from_f16(half))) << bits;
      EXPECT_TRUE(std::isnan(from_f16(to_f16(from_f16(half))))) << bits;
    } else {
      ASSERT_EQ(from_f16(half), expected) << bits;
      ASSERT_EQ(to_f16(from_f16(half)), half) << bits;
    }
  }
}

TEST(Half, BetweenTwoF16TheNearerIsTakenAndTheEvenOneOfEqualDistance) {
  for (int bits = 0; bits < 0x7bff; ++bits) {
    const auto low = static_cast<uint16_t>(bits), high = static_cast<uint16_t>(bits + 1);
    const float a = from_f16(low), b = from_f16(high), middle = a + (b - a) / 2;
    ASSERT_EQ(to_f16(middle), bits % 2 == 0 ? low : high) << bits;
    ASSERT_EQ(to_f16(std::nextafter(middle, 0.0f)), low) << bits;
    ASSERT_EQ(to_f16(-std::nextafter(middle, 1e9f)), high | 0x8000) << bits;
  }
  EXPECT_EQ(to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(to_f16(1e30f), 0x7c00);
  EXPECT_EQ(to_f16(-1e-30f), 0x8000);
}

TEST(Half, Bf16RoundsToNearestEven) {
  const std::tuple<float, float> table[] = {{1.0f, 1.0f},
                                            {1.00390625f, 1.0f},
                                            {1.01171875f, 1.015625f},
                                            {1.003907f, 1.0078125f},
                                            {-1.01171875f, -1.015625f},
                                            {3.4e38f, std::numeric_limits<float>::infinity()},
                                            {0.0f, 0.0f}};
  for (const auto& [value, expected] : table)
    EXPECT_EQ(from_bf16(to_bf16(value)), expected) << value;
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

TEST(Half, SumsAreThoseOfTheScalarRuleForAnyLength) {
  for (const int count : {0, 1, 7, 8, 9, 31, 1000}) {
    std::vector<uint16_t> a, b;
    for (int i = 0; i < count; ++i) {
      a.push_back(to_f16(0.37f * static_cast<float>(i) - 20));
      b.push_back(to_f16(3.1f / static_cast<float>(i + 1)));
    }
    auto f16 = a, bf16 = a;
    add_f16(f16.data(), b.data(), count);
    add_bf16(bf16.data(), b.data(), count);
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(f16[i], to_f16(from_f16(a[i]) + from_f16(b[i]))) << i;
      EXPECT_EQ(bf16[i], to_bf16(from_bf16(a[i]) + from_bf16(b[i]))) << i;
    }
  }
}

}  // namespace
}  // namespace stretto::distributed
