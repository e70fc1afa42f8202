#include "train/update_batches.h"

#include <gtest/gtest.h>

#include "tests/train/recurrent_task.h"
#include "tests/train/toy_task.h"

namespace stretto::train {
namespace {

using Ids = std::vector<int64_t>;
using Positions = std::vector<data::Position>;

/// Eight micro-batches an epoch, of two samples each.
class UpdateBatchesTest : public ::testing::Test {
 protected:
  static constexpr int64_t kPrefetch = 2;

  UpdateBatches batches(const data::RankBatches& share) const {
    return {source_, share, {.depth = kPrefetch}};
  }
  /// The samples of the next update on this rank; moves behind it.
  static Ids next(UpdateBatches& batches) {
    batches.load();
    Ids ids;
    for (const auto& batch : batches.batches()) {
      ids.insert(ids.end(), batch.sample_ids.begin(), batch.sample_ids.end());
    }
    batches.advance();
    return ids;
  }
  /// The samples of these micro-batches.
  Ids of(int64_t epoch, const std::vector<int64_t>& indices) const {
    Ids ids;
    for (const int64_t index : indices) {
      const auto batch = source_.load(epoch, index);
      ids.insert(ids.end(), batch.sample_ids.begin(), batch.sample_ids.end());
    }
    return ids;
  }

  test::ToySource source_;
};

TEST_F(UpdateBatchesTest, AnUpdateNeverCrossesAnEpoch) {
  auto tried = batches({.update_freq = 3});
  tried.seek({});
  EXPECT_EQ(next(tried), of(0, {0, 1, 2}));
  EXPECT_EQ(next(tried), of(0, {3, 4, 5}));
  EXPECT_EQ(next(tried), of(0, {6, 7}));
  EXPECT_EQ(tried.position(), (data::Position{.epoch = 1, .index = 0}));
  EXPECT_EQ(next(tried), of(1, {0, 1, 2}));
}

TEST_F(UpdateBatchesTest, TheSameUpdateIsLoadedAfterASeek) {
  auto tried = batches({.update_freq = 2});
  tried.seek({.epoch = 2, .index = 4});
  EXPECT_EQ(next(tried), of(2, {4, 5}));
  tried.seek({.epoch = 0, .index = 2});
  EXPECT_EQ(next(tried), of(0, {2, 3}));
}

TEST_F(UpdateBatchesTest, RanksShareTheMicroBatchesOutAndHashTheSame) {
  auto first = batches({.update_freq = 4, .rank = 0, .size = 2});
  auto second = batches({.update_freq = 4, .rank = 1, .size = 2});
  auto alone = batches({.update_freq = 4});
  for (auto* one : {&first, &second, &alone}) {
    one->seek({});
    EXPECT_EQ(one->load(), 4) << "of all ranks";
  }
  EXPECT_EQ(first.hash(), alone.hash());
  EXPECT_EQ(second.hash(), alone.hash());
  first.advance();
  EXPECT_EQ(next(first), of(0, {4, 6}));
}

TEST_F(UpdateBatchesTest, ASplitKeepsSamplesAndPlaces) {
  auto tried = batches({.update_freq = 2});
  tried.seek({});
  tried.load();
  tried.split(1);
  ASSERT_EQ(tried.batches().size(), 3U);
  const Ids whole = of(0, {1});
  EXPECT_EQ(tried.batches()[1].sample_ids, Ids{whole[0]});
  EXPECT_EQ(tried.batches()[2].sample_ids, Ids{whole[1]});
  EXPECT_EQ(tried.positions(), (Positions{{0, 0}, {0, 1}, {0, 1}}));
  tried.advance();
  EXPECT_EQ(tried.position(), (data::Position{.epoch = 0, .index = 2}));
}

TEST(UpdateBatchesOfLanes, AllRanksKnowTheLanesOfAllMicroBatches) {
  const test::LaneSource source(/*groups=*/4);
  const std::vector<std::vector<int32_t>> expected{{0, 4, 8}, {1, 5, 9}, {2, 6, 10}, {3, 7, 11}};
  for (const int64_t size : {1, 2, 3}) {
    for (int64_t rank = 0; rank < size; ++rank) {
      UpdateBatches tried(source, {.update_freq = 4, .rank = rank, .size = size}, {.depth = 2});
      tried.seek({.epoch = 1, .index = 4});
      tried.load();
      EXPECT_EQ(tried.lanes(), expected) << rank << " of " << size;
    }
  }
}

}  // namespace
}  // namespace stretto::train
