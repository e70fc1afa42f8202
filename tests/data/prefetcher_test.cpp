#include "data/prefetcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>

namespace stretto::data {
namespace {

/// Batches that tell their coordinates; loading takes a different time for each.
class Counting final : public BatchSource {
 public:
  explicit Counting(int64_t size, int64_t bad = -1) : size_(size), bad_(bad) {}
  int64_t num_batches() const override { return size_; }
  Batch load(int64_t epoch, int64_t index) const override {
    ++loaded;
    std::this_thread::sleep_for(std::chrono::microseconds((index * 7919 + epoch) % 500));
    if (index == bad_) throw std::runtime_error("bad batch");
    Batch batch;
    batch.sample_ids = {epoch, index};
    return batch;
  }
  mutable std::atomic<int64_t> loaded{0};

 private:
  int64_t size_, bad_;
};

TEST(Prefetcher, KeepsTheOrderForAnyDepthAndThreads) {
  const Counting source(13);
  for (const int64_t depth : {1, 3, 16}) {
    for (const int64_t threads : {1, 2, 5}) {
      Prefetcher prefetcher(source, {.epoch = 2, .index = 11}, {depth, threads});
      int64_t epoch = 2, index = 11;
      for (int i = 0; i < 40; ++i) {
        const auto position = prefetcher.position();
        EXPECT_EQ(position.epoch, epoch);
        EXPECT_EQ(position.index, index);
        EXPECT_EQ(prefetcher.next().sample_ids, (std::vector<int64_t>{epoch, index}));
        if (++index == 13) ++epoch, index = 0;
      }
    }
  }
}

TEST(Prefetcher, LoadsAheadButNeverMoreThanItsDepth) {
  const Counting source(1000);
  Prefetcher prefetcher(source, {}, {4, 2});
  for (int i = 0; i < 200 && source.loaded < 4; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(source.loaded, 4);
  prefetcher.next();
  for (int i = 0; i < 200 && source.loaded < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(source.loaded, 5);
}

TEST(Prefetcher, RethrowsInItsPlaceAndGoesOn) {
  const Counting source(10, 3);
  Prefetcher prefetcher(source, {}, {8, 3});
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(prefetcher.next().sample_ids[1], i);
  EXPECT_THROW(prefetcher.next(), std::runtime_error);
  EXPECT_EQ(prefetcher.next().sample_ids[1], 4);
}

TEST(Prefetcher, EndsWhileThreadsAreAtWork) {
  const Counting source(1000);
  for (int i = 0; i < 50; ++i) {
    Prefetcher prefetcher(source, {}, {8, 4});
    if (i % 2 == 0) prefetcher.next();
  }
}

TEST(Prefetcher, RefusesAPlaceOutsideTheSource) {
  const Counting source(5), empty(0);
  EXPECT_THROW(Prefetcher(source, {.epoch = 0, .index = 6}, {2, 1}), std::invalid_argument);
  EXPECT_THROW(Prefetcher(source, {.epoch = -1, .index = 0}, {2, 1}), std::invalid_argument);
  EXPECT_THROW(Prefetcher(empty, {}, {2, 1}), std::invalid_argument);
}

TEST(Prefetcher, SharesOfSeveralProcessesTogetherAreTheWholeOrder) {
  const Counting source(13);
  for (const int64_t size : {2, 3}) {
    for (int64_t rank = 0; rank < size; ++rank) {
      const RankBatches share{.update_freq = 4, .rank = rank, .size = size};
      Prefetcher prefetcher(source, {.epoch = 1, .index = 8}, {3, 2}, share);
      for (int64_t epoch = 1; epoch < 4; ++epoch) {
        for (int64_t index = epoch == 1 ? 8 : 0; index < 13; ++index) {
          if (index % 4 % size != rank) continue;
          EXPECT_EQ(prefetcher.next().sample_ids, (std::vector<int64_t>{epoch, index}));
        }
      }
    }
  }
}

TEST(Prefetcher, WithoutAShareOfItsOwnLoadsNothing) {
  const Counting source(5);
  Prefetcher prefetcher(source, {}, {3, 1}, {.update_freq = 2, .rank = 2, .size = 3});
  EXPECT_THROW(prefetcher.next(), std::logic_error);
  EXPECT_EQ(source.loaded, 0);
}

}  // namespace
}  // namespace stretto::data
