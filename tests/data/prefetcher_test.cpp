#include "data/prefetcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stretto::data {
namespace {

/// Items that can be moved alone, and tell their number; making takes a different time for each.
using Numbered = std::unique_ptr<int64_t>;
struct Maker {
  int64_t bad = -1;
  std::atomic<int64_t> made{0};

  Numbered operator()(int64_t number) {
    ++made;
    std::this_thread::sleep_for(std::chrono::microseconds(number * 7919 % 500));
    if (number == bad) throw std::runtime_error("item " + std::to_string(number) + " is bad");
    return std::make_unique<int64_t>(number);
  }
  std::function<Numbered(int64_t)> function() {
    return [this](int64_t number) { return (*this)(number); };
  }
  /// Waits, not for ever, until so many were made.
  void wait_for(int64_t count) const {
    for (int i = 0; i < 200 && made < count; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
};

TEST(Prefetcher, KeepsTheOrderForAnyDepthAndThreads) {
  for (const int64_t depth : {1, 3, 16}) {
    for (const int64_t threads : {1, 2, 5}) {
      Maker maker;
      Prefetcher<Numbered> prefetcher({depth, threads}, maker.function());
      for (int64_t i = 0; i < 40; ++i) EXPECT_EQ(*prefetcher.next(), i);
    }
  }
}

TEST(Prefetcher, MakesAheadButNeverMoreThanItsDepth) {
  Maker maker;
  Prefetcher<Numbered> prefetcher({4, 2}, maker.function());
  maker.wait_for(4);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(maker.made, 4);
  prefetcher.next();
  maker.wait_for(5);
  EXPECT_EQ(maker.made, 5);
}

TEST(Prefetcher, MakesOnAsManyThreadsAsItIsTold) {
  // No item is finished before three are being made at once.
  std::atomic<int> begun = 0;
  Prefetcher<bool> prefetcher({3, 3}, [&](int64_t /*number*/) {
    ++begun;
    for (int i = 0; i < 5000 && begun < 3; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return begun >= 3;
  });
  EXPECT_TRUE(prefetcher.next());
}

TEST(Prefetcher, RethrowsInItsPlaceWithItsWordsAndGoesOn) {
  for (const int64_t threads : {1, 3}) {
    Maker maker{.bad = 3};
    Prefetcher<Numbered> prefetcher({8, threads}, maker.function());
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(*prefetcher.next(), i);
    try {
      prefetcher.next();
      FAIL() << "item 3 was made";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "item 3 is bad");
    }
    EXPECT_EQ(*prefetcher.next(), 4);
  }
}

TEST(Prefetcher, EndsBehindTheLastItem) {
  for (const int64_t count : {0, 1, 7}) {
    Maker maker;
    Prefetcher<Numbered> prefetcher({4, 3}, maker.function(), count);
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(*prefetcher.next(), i);
    EXPECT_THROW(prefetcher.next(), std::logic_error);
    EXPECT_EQ(maker.made, count);
  }
}

TEST(Prefetcher, EndsWhileThreadsAreAtWork) {
  for (int i = 0; i < 50; ++i) {
    Maker maker;
    Prefetcher<Numbered> prefetcher({8, 4}, maker.function());
    if (i % 2 == 0) prefetcher.next();
  }
}

TEST(Prefetcher, EndsWithItemsAndFailuresThatNobodyTook) {
  Maker maker{.bad = 1};
  Prefetcher<Numbered> prefetcher({4, 2}, maker.function());
  maker.wait_for(4);
}

TEST(Prefetcher, ItsThreadsAreGoneBehindIt) {
  // What they made with need not live longer.
  for (int i = 0; i < 20; ++i) {
    auto made = std::make_unique<std::vector<std::atomic<int64_t>>>(1000);
    {
      Prefetcher<int64_t> prefetcher({8, 4}, [&made](int64_t number) {
        std::this_thread::yield();
        return ++(*made)[static_cast<size_t>(number)];
      });
      EXPECT_EQ(prefetcher.next(), 1);
    }
    made.reset();
  }
}

}  // namespace
}  // namespace stretto::data
