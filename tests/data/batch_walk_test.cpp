#include "data/batch_walk.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace stretto::data {
namespace {

/// Batches of two samples that tell the batch's coordinates.
class Coordinates final : public BatchSource {
 public:
  explicit Coordinates(int64_t size) : size_(size) {}
  int64_t num_batches() const override { return size_; }
  Batch load(int64_t epoch, int64_t index) const override {
    return {.sample_ids = {epoch, index}, .columns = {PackedTokens{{1, 2}, {0, 1, 2}}}};
  }

 private:
  int64_t size_;
};

TEST(BatchWalk, GoesOnThroughTheEpochs) {
  const Coordinates source(13);
  const BatchWalk walk(source, {.epoch = 2, .index = 11});
  int64_t epoch = 2, index = 11;
  for (int64_t i = 0; i < 40; ++i) {
    EXPECT_EQ(walk.load(i).sample_ids, (std::vector<int64_t>{epoch, index}));
    if (++index == 13) ++epoch, index = 0;
  }
}

TEST(BatchWalk, BatchesAndTheirSlicesKnowTheirEpoch) {
  const Coordinates source(4);
  for (const int64_t size : {1, 2}) {  // of two, each has a half of each batch
    const BatchWalk walk(source, {.epoch = 3, .index = 2}, {.size = size, .cut = true});
    for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(walk.load(i).epoch, 3 + (2 + i) / 4) << size;
  }
}

TEST(BatchWalk, TheEndOfAnEpochIsTheBeginningOfTheNext) {
  const Coordinates source(5);
  const BatchWalk walk(source, {.epoch = 1, .index = 5}, {.update_freq = 2});
  EXPECT_EQ(walk.load(0).sample_ids, (std::vector<int64_t>{2, 0}));
}

TEST(BatchWalk, RefusesAPlaceOutsideTheSource) {
  const Coordinates source(5), empty(0);
  EXPECT_THROW(BatchWalk(source, {.epoch = 0, .index = 6}), std::invalid_argument);
  EXPECT_THROW(BatchWalk(source, {.epoch = -1, .index = 0}), std::invalid_argument);
  EXPECT_THROW(BatchWalk(source, {.epoch = 0, .index = 1}, {.update_freq = 2}),
               std::invalid_argument);
  EXPECT_THROW(BatchWalk(empty, {}), std::invalid_argument);
}

TEST(BatchWalk, SharesOfSeveralProcessesTogetherAreTheWholeOrder) {
  const Coordinates source(13);
  for (const int64_t size : {2, 3}) {
    for (int64_t rank = 0; rank < size; ++rank) {
      const RankBatches share{.update_freq = 4, .rank = rank, .size = size};
      const BatchWalk walk(source, {.epoch = 1, .index = 8}, share);
      int64_t number = 0;
      for (int64_t epoch = 1; epoch < 4; ++epoch) {
        for (int64_t index = epoch == 1 ? 8 : 0; index < 13; ++index) {
          if (index % 4 % size != rank) continue;
          EXPECT_EQ(walk.load(number++).sample_ids, (std::vector<int64_t>{epoch, index}));
        }
      }
    }
  }
}

TEST(BatchWalk, GivesEachProcessItsSliceOfASharedMicroBatch) {
  const Coordinates source(3);
  for (const int64_t rank : {0, 1, 2, 3}) {
    const BatchWalk walk(source, {}, {.update_freq = 1, .rank = rank, .size = 4, .cut = true});
    const Batch own = walk.load(2);
    if (own.num_sequences() == 0) continue;  // two samples are less than four processes
    ASSERT_EQ(own.num_sequences(), 1);
    EXPECT_EQ(own.sample_ids, (std::vector<int64_t>{rank == 0 ? 0 : 2}));
    EXPECT_EQ(own.column<int64_t>(0).values, (std::vector<int64_t>{rank == 0 ? 1 : 2}));
    EXPECT_LT(rank, 2);
  }
}

TEST(BatchWalk, KnowsThatNothingFallsToAProcess) {
  const Coordinates source(5);
  EXPECT_TRUE(BatchWalk(source, {}, {.update_freq = 2, .rank = 2, .size = 3}).empty());
  EXPECT_FALSE(BatchWalk(source, {}, {.update_freq = 2, .rank = 1, .size = 3}).empty());
}

}  // namespace
}  // namespace stretto::data
