#include "compress/held_zeros.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compress/masks.h"
#include "compress/quantise.h"
#include "tests/kernels/gradcheck.h"

namespace stretto::compress {
namespace {

// Every third weight is pruned, but rounding made something of each of them.
TEST(HeldZeros, MakesPrunedWeightsZeroInEachFormatAndLeavesTheOthers) {
  const at::Tensor weight = stretto::testing::noise({6, 32}) + 1;
  std::vector<uint8_t> pruned(6 * 32);
  for (size_t i = 0; i < pruned.size(); i += 3) pruned[i] = 1;
  const std::string bits = pack_mask(pruned);
  for (const int64_t width : {2, 3, 4, 6, 8}) {
    for (const bool symmetric : {true, false}) {
      store::QuantFormat format;
      format.bits = width;
      format.symmetric = symmetric;
      format.scope = store::QuantScope::kGroup;
      format.group_size = 8;
      auto packed = quantise(weight, format, Rounding::kNearest, "w");
      const at::Tensor before = dequantise(packed.view());
      hold_zeros(packed, bits);
      EXPECT_EQ(store::bytes_problem(packed.view()), "");
      const at::Tensor after = dequantise(packed.view());
      for (size_t i = 0; i < pruned.size(); ++i) {
        const auto place = static_cast<int64_t>(i);
        const float left = after.flatten()[place].item<float>();
        if (pruned[i] != 0) {
          EXPECT_EQ(left, 0) << width << " bits, " << symmetric << ", weight " << i;
        } else {
          EXPECT_EQ(left, before.flatten()[place].item<float>());
        }
      }
    }
  }
}

}  // namespace
}  // namespace stretto::compress
