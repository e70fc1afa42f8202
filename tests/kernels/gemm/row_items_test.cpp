// How rows of a product are shared out among threads.
#include "kernels/gemm/row_items.h"

#include <gtest/gtest.h>

namespace stretto::kernels::gemm {
namespace {

constexpr int64_t kMost = 192;

TEST(RowItems, CoverAllRowsOnceInTilesOfAtMostTheBound) {
  for (const int64_t threads : {1, 2, 3, 8, 64}) {
    for (const int64_t blocks : {1, 2, 3, 8}) {
      for (int64_t rows = 1; rows < 5000; rows += rows < 300 ? 1 : 97) {
        const RowItems items(rows, blocks, kMost, threads);
        ASSERT_EQ(items.first(0), 0);
        ASSERT_EQ(items.first(items.count()), rows);
        for (int64_t i = 0; i < items.count(); ++i) {
          const int64_t count = items.first(i + 1) - items.first(i);
          ASSERT_GT(count, 0) << rows << " rows, " << threads << " threads, item " << i;
          ASSERT_LE(count, kMost) << rows << " rows, " << threads << " threads, item " << i;
          ASSERT_EQ(items.first(i) % RowItems::kUnit, 0);
        }
      }
    }
  }
}

TEST(RowItems, GiveEachThreadAsManyWhereThereAreRowsEnough) {
  for (const int64_t threads : {1, 2, 3, 8}) {
    for (const int64_t blocks : {1, 2, 3, 8}) {
      for (const int64_t rows : {1024, 1890, 3600, 4097}) {
        const RowItems items(rows, blocks, kMost, threads);
        EXPECT_EQ(items.count() * blocks % threads, 0) << rows << " rows, " << threads;
        int64_t least = rows, most = 0;
        for (int64_t i = 0; i < items.count(); ++i) {
          const int64_t count = items.first(i + 1) - items.first(i);
          least = std::min(least, count);
          most = std::max(most, count);
        }
        EXPECT_LE(most - least, 2 * RowItems::kUnit) << rows << " rows, " << threads << " threads";
      }
    }
  }
}

TEST(RowItems, AreNoMoreThanTheRowsAreWorth) {
  EXPECT_EQ(RowItems(0, 1, kMost, 2).count(), 0);
  EXPECT_EQ(RowItems(20, 0, kMost, 2).count(), 1);
  EXPECT_EQ(RowItems(20, 1, kMost, 64).count(), 1);
  EXPECT_EQ(RowItems(240, 1, kMost, 64).count(), 10);
  EXPECT_EQ(RowItems(192, 1, kMost, 1).count(), 1);
  EXPECT_EQ(RowItems(3600, 8, kMost, 2).count(), 19);
  EXPECT_EQ(RowItems(3600, 1, kMost, 2).count(), 20);
}

}  // namespace
}  // namespace stretto::kernels::gemm
