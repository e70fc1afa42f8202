#include "kernels/gemm/large_pages.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace stretto::kernels::gemm {
namespace {

constexpr int64_t kPage = int64_t{2} << 20;

TEST(LargePages, BeginAtOneAndTakeEveryNumber) {
  for (const int64_t count : {kPage / 4, kPage / 4 + 1, 3 * kPage / 4 + 1000}) {
    at::Tensor numbers = in_large_pages({count}, at::kFloat);
    ASSERT_EQ(numbers.numel(), count);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(numbers.data_ptr()) % uintptr_t{kPage}, 0U);
    numbers.fill_(1);
    EXPECT_EQ(numbers.sum().item<double>(), static_cast<double>(count));
  }
}

TEST(LargePages, HaveTheShapeAndTheTypeOfWhatIsAskedFor) {
  const at::Tensor numbers = in_large_pages({300, 20, 100}, at::kDouble);
  EXPECT_EQ(numbers.sizes(), (std::vector<int64_t>{300, 20, 100}));
  EXPECT_EQ(numbers.scalar_type(), at::kDouble);
  EXPECT_TRUE(numbers.is_contiguous());
}

TEST(LargePages, AreNotAskedForByLessThanOne) {
  EXPECT_EQ(in_large_pages({0}, at::kFloat).numel(), 0);
  EXPECT_EQ(in_large_pages({kPage / 4 - 1}, at::kFloat).numel(), kPage / 4 - 1);
}

}  // namespace
}  // namespace stretto::kernels::gemm
