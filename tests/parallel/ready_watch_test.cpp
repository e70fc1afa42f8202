#include "parallel/ready_watch.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <string>
#include <vector>

namespace stretto::parallel {
namespace {

/// `first` makes what `last` reads; `twice` has two uses; `idle` has none.
struct Net : torch::nn::Module {
  Net() {
    first = register_parameter("first", torch::ones({2, 2}));
    last = register_parameter("last", torch::ones({2, 2}));
    twice = register_parameter("twice", torch::ones({2, 2}));
    idle = register_parameter("idle", torch::ones({2, 2}));
  }
  at::Tensor forward(bool uses_last = true) {
    const at::Tensor x = torch::tensor({{1.0f, 2.0f}, {3.0f, 4.0f}});
    const at::Tensor hidden = twice.matmul(first.matmul(x));
    return (uses_last ? twice.matmul(last.matmul(hidden)) : hidden).sum();
  }
  at::Tensor first, last, twice, idle;
};

using Names = std::vector<std::string>;

class ReadyWatchTest : public ::testing::Test {
 protected:
  std::string name(size_t slot) const { return arena_.slots()[slot].name; }
  size_t slot(const std::string& wanted) const {
    size_t at = 0;
    while (name(at) != wanted) ++at;
    return at;
  }
  void backward(bool uses_last = true) {
    ready_.clear();
    net_.forward(uses_last).backward();
  }
  Readiness learn() {
    watch_.start_learning();
    backward();
    return watch_.learned();
  }

  Net net_;
  optim::Arena arena_{net_};
  Names ready_;
  ReadyWatch watch_{arena_, [this](size_t slot) { ready_.push_back(name(slot)); }};
};

TEST_F(ReadyWatchTest, LearnsTheOrderOfTheLastAccumulations) {
  const auto readiness = learn();
  Names order;
  for (const size_t slot : readiness.order) order.push_back(name(slot));
  // Backward goes from the end to the beginning; what has no gradient comes last.
  EXPECT_EQ(order.size(), 4u);
  EXPECT_EQ(order[0], "last");
  EXPECT_EQ(order[3], "idle");
  EXPECT_EQ(readiness.times[slot("idle")], 0);
  EXPECT_EQ(readiness.times[slot("first")], 1);
  EXPECT_GE(readiness.times[slot("twice")], 1);
  EXPECT_TRUE(ready_.empty()) << "nothing is told while learning";
}

TEST_F(ReadyWatchTest, TellsEachSlotOnceInThatOrderUntilItIsStopped) {
  const auto readiness = learn();
  Names expected;
  for (const size_t slot : readiness.order) {
    if (readiness.times[slot] > 0) expected.push_back(name(slot));
  }
  for (int pass = 0; pass < 2; ++pass) {
    watch_.start_reporting(readiness);
    backward();
    EXPECT_EQ(ready_, expected);
    EXPECT_FALSE(watch_.late());
  }
  watch_.stop();
  backward();
  EXPECT_TRUE(ready_.empty());
}

TEST_F(ReadyWatchTest, ASlotIsCompleteAfterAsManyAccumulationsAsWereLearned) {
  auto readiness = learn();
  readiness.times[slot("last")] = 2;  // as if a second use of it were to come
  watch_.start_reporting(readiness);
  backward();
  EXPECT_EQ(std::count(ready_.begin(), ready_.end(), "last"), 0);
  backward();  // the second
  EXPECT_EQ(std::count(ready_.begin(), ready_.end(), "last"), 1);
}

TEST_F(ReadyWatchTest, AnAccumulationAfterItWasToldIsLateAndSaidOnce) {
  watch_.start_reporting(learn());
  backward();
  EXPECT_FALSE(watch_.late());
  net_.last.sum().backward();
  EXPECT_EQ(watch_.late(), slot("last"));
  EXPECT_FALSE(watch_.late());
  net_.idle.sum().backward();  // is never sent from a bucket that waits for it
  EXPECT_FALSE(watch_.late());
}

TEST_F(ReadyWatchTest, ASlotThatIsLeftOutInAPassIsNotTold) {
  watch_.start_reporting(learn());
  backward(/*uses_last=*/false);
  EXPECT_EQ(std::count(ready_.begin(), ready_.end(), "last"), 0);
  EXPECT_EQ(std::count(ready_.begin(), ready_.end(), "first"), 1);
}

TEST(ReadyWatch, ItsHooksEndWithIt) {
  Net net;
  optim::Arena arena(net);
  int told = 0;
  {
    ReadyWatch watch(arena, [&](size_t) { ++told; });
    watch.start_learning();
    net.forward().backward();
    watch.start_reporting(watch.learned());
  }
  net.forward().backward();
  EXPECT_EQ(told, 0);
}

}  // namespace
}  // namespace stretto::parallel
