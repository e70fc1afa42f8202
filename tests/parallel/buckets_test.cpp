#include "parallel/buckets.h"

#include <gtest/gtest.h>

#include <vector>

namespace stretto::parallel {
namespace {

// Places of tensors of these sizes, one after the other.
std::vector<Range> extents(const std::vector<int64_t>& sizes) {
  std::vector<Range> places;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    places.push_back({begin, begin + size});
    begin += size;
  }
  return places;
}

std::vector<std::vector<Range>> ranges(const std::vector<Bucket>& buckets) {
  std::vector<std::vector<Range>> all;
  for (const Bucket& bucket : buckets) all.push_back(bucket.ranges);
  return all;
}

using Ranges = std::vector<std::vector<Range>>;

TEST(Buckets, NeighboursThatBecomeReadyTogetherAreOneRange) {
  const auto places = extents({10, 20, 30, 40});
  const auto buckets = plan_buckets(places, std::vector<size_t>{3, 2, 1, 0}, 70);
  EXPECT_EQ(ranges(buckets), (Ranges{{{30, 100}}, {{0, 30}}}));
  EXPECT_EQ(buckets[0].tensors, (std::vector<size_t>{3, 2}));
  EXPECT_EQ(buckets[1].tensors, (std::vector<size_t>{1, 0}));
}

TEST(Buckets, TensorsFarApartAreSeveralRangesInTheOrderOfTheArena) {
  const auto buckets = plan_buckets(extents({10, 20, 30, 40}), std::vector<size_t>{3, 0, 2, 1}, 60);
  EXPECT_EQ(ranges(buckets), (Ranges{{{0, 10}, {60, 100}}, {{10, 60}}}));
  EXPECT_EQ(buckets[0].size(), 50);
}

TEST(Buckets, ATensorThatDoesNotFitOpensTheNextBucket) {
  const auto buckets = plan_buckets(extents({50, 50, 50}), std::vector<size_t>{0, 1, 2}, 99);
  EXPECT_EQ(ranges(buckets), (Ranges{{{0, 50}}, {{50, 100}}, {{100, 150}}}));
}

TEST(Buckets, ALargeTensorGoesInPartsAndItsRestMeetsTheNextTensor) {
  const auto places = extents({10, 250});
  const auto down = plan_buckets(places, std::vector<size_t>{1, 0}, 100);
  EXPECT_EQ(ranges(down), (Ranges{{{160, 260}}, {{60, 160}}, {{0, 60}}}));
  EXPECT_EQ(down[2].tensors, (std::vector<size_t>{1, 0}));
  const auto up = plan_buckets(places, std::vector<size_t>{0, 1}, 100);
  EXPECT_EQ(ranges(up), (Ranges{{{0, 10}}, {{10, 110}}, {{110, 210}}, {{210, 260}}}));
}

TEST(Buckets, EachElementIsInOneBucketForAnySize) {
  const auto places = extents({64, 1000, 16, 0, 48, 333, 16, 2048});
  const std::vector<size_t> order{5, 0, 7, 2, 6, 3, 1, 4};
  for (const int64_t most : {1, 16, 100, 1000, 5000}) {
    for (const int64_t small : {0, 50, 10000}) {
      std::vector<int> times(static_cast<size_t>(places.back().end));
      for (const Bucket& bucket : plan_buckets(places, order, most, small)) {
        EXPECT_LE(bucket.size(), most);
        EXPECT_GT(bucket.size(), 0);
        for (const Range& range : bucket.ranges) {
          for (int64_t i = range.begin; i < range.end; ++i) ++times[static_cast<size_t>(i)];
        }
      }
      EXPECT_EQ(times, std::vector<int>(times.size(), 1)) << most << " " << small;
    }
  }
}

TEST(Buckets, SmallTensorsTravelTogetherBeforeTheLastLargeOne) {
  // Two matrices of each of two layers, and behind them the vectors that belong to them.
  const auto places = extents({50, 50, 50, 50, 2, 3, 4, 5});
  const std::vector<size_t> order{7, 3, 6, 2, 5, 1, 4, 0};
  EXPECT_EQ(ranges(plan_buckets(places, order, 100, 10)),
            (Ranges{{{100, 200}}, {{50, 100}}, {{200, 214}}, {{0, 50}}}));
  // Where all are small, nothing changes.
  EXPECT_EQ(ranges(plan_buckets(places, order, 100, 1000)),
            ranges(plan_buckets(places, order, 100)));
}

TEST(Buckets, SlicesAreCutToTheElementsOfABucket) {
  const Bucket bucket{{{10, 30}, {50, 90}}, {}};
  EXPECT_EQ(cut_by_slices(bucket, std::vector<int64_t>{0, 20, 40, 60, 100}),
            (std::vector<int64_t>{0, 10, 20, 30, 60}));
  EXPECT_EQ(cut_by_slices(bucket, std::vector<int64_t>{0, 5, 95, 100}),
            (std::vector<int64_t>{0, 0, 60, 60}));
}

TEST(Buckets, SlicesAreEqualAndMultiplesOfTheBlock) {
  EXPECT_EQ(equal_slices(100, 4, 10), (std::vector<int64_t>{0, 30, 60, 90, 100}));
  EXPECT_EQ(equal_slices(80, 2, 10), (std::vector<int64_t>{0, 40, 80}));
  EXPECT_EQ(equal_slices(15, 3, 10), (std::vector<int64_t>{0, 10, 15, 15}));
  EXPECT_EQ(equal_slices(7, 1, 10), (std::vector<int64_t>{0, 7}));
}

}  // namespace
}  // namespace stretto::parallel
