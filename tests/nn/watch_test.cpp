#include "nn/watch.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>
#include <string>
#include <vector>

#include "nn/feed_forward.h"
#include "nn/norm.h"

namespace stretto::nn {
namespace {

/// norm -> feed-forward, as a block of a model has them.
struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(const Init& init) {
    norm = register_module("norm", LayerNorm(init.child("norm"), 8));
    ffn = register_module("ffn", FeedForward(init.child("ffn"), 8, 16, "relu"));
  }
  at::Tensor forward(const at::Tensor& x) const { return ffn->forward(norm->forward(x), {}); }

  LayerNorm norm{nullptr};
  FeedForward ffn{nullptr};
};
TORCH_MODULE(Block);

struct Seen {
  std::vector<std::string> order;
  Watcher watcher() {
    return [this](const Watched& watched) {
      order.push_back(watched.module + (watched.backward ? " backward" : " forward"));
    };
  }
};

at::Tensor input() {
  return at::arange(24, at::kFloat).view({3, 8}) / 10;
}

TEST(Watch, TellsOutputsInTheOrderOfForwardAndTheirGradientsInThatOfBackward) {
  Block block{Init(1, at::kCPU)};
  Seen seen;
  {
    const WatchScope scope(*block, seen.watcher());
    block->forward(input()).sum().backward();
  }
  const std::vector<std::string> expected{"norm forward",     "ffn.up forward",    "ffn forward",
                                          "ffn.down forward", "ffn.down backward", "ffn backward",
                                          "ffn.up backward",  "norm backward"};
  EXPECT_EQ(seen.order, expected);
}

TEST(Watch, TellsTheGradientOfEachUseOfAParameterBeforeTheyAreSummed) {
  Linear linear{Init(1, at::kCPU), 8, 4};
  const at::Tensor& weight = linear->weight;
  EXPECT_TRUE(watch_use("nobody", weight).is_same(weight));
  std::vector<std::string> order;
  std::vector<double> sums;
  {
    const WatchScope scope(*linear, [&](const Watched& watched) {
      if (!watched.parameter) return;
      EXPECT_TRUE(watched.backward);
      order.push_back(watched.module);
      sums.push_back(watched.values.sum().item<double>());
    });
    const at::Tensor first = watch_use("first", weight).sum();
    (first + 3 * watch_use("second", weight).sum()).backward();
  }
  EXPECT_EQ(order, (std::vector<std::string>{"second", "first"}));
  EXPECT_EQ(sums, (std::vector<double>{3 * 32, 32}));
  EXPECT_EQ(weight.grad().sum().item<double>(), 4 * 32);
}

TEST(Watch, GivesTheValuesThemselves) {
  Linear linear{Init(1, at::kCPU), 8, 4};
  at::Tensor output, gradient;
  at::Tensor result;
  {
    const WatchScope scope(*linear, [&](const Watched& watched) {
      (watched.backward ? gradient : output) = watched.values;
    });
    result = linear->forward(input());
    (result * 3).sum().backward();
  }
  EXPECT_TRUE(output.is_same(result));
  EXPECT_TRUE(at::equal(gradient, at::full_like(result, 3)));
}

TEST(Watch, NamesTheWatchedModelItselfAndStrangers) {
  Linear linear{Init(1, at::kCPU), 8, 4}, stranger{Init(1, at::kCPU), 8, 4};
  Seen seen;
  const WatchScope scope(*linear, seen.watcher());
  linear->forward(input());
  stranger->forward(input());
  ASSERT_EQ(seen.order.size(), 2U);
  EXPECT_EQ(seen.order[0], "model forward");
  EXPECT_NE(seen.order[1].find("LinearImpl"), std::string::npos) << seen.order[1];
}

TEST(Watch, LeavesNoTraceWhenNobodyWatches) {
  Block block{Init(1, at::kCPU)};
  Seen seen;
  at::Tensor recorded;
  {
    const WatchScope scope(*block, seen.watcher());
    recorded = block->forward(input()).sum();
  }
  const size_t told = seen.order.size();
  recorded.backward();  // the graph outlives the scope; its hooks must not
  block->forward(input()).sum().backward();
  EXPECT_EQ(seen.order.size(), told);

  Linear linear{Init(1, at::kCPU), 8, 4};
  const at::Tensor x = input();
  EXPECT_TRUE(watch(*linear, x).is_same(x));
  EXPECT_FALSE(watch(*linear, at::Tensor()).defined());
}

TEST(Watch, ChangesNoNumbers) {
  Block watched{Init(1, at::kCPU)}, plain{Init(1, at::kCPU)};
  Seen seen;
  {
    const WatchScope scope(*watched, seen.watcher());
    watched->forward(input()).square().sum().backward();
  }
  plain->forward(input()).square().sum().backward();
  const auto a = watched->parameters(), b = plain->parameters();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i].grad(), b[i].grad())) << i;
}

TEST(Watch, IsToldNothingOfTensorsWithoutGradientInBackward) {
  Block block{Init(1, at::kCPU)};
  Seen seen;
  const WatchScope scope(*block, seen.watcher());
  const torch::NoGradGuard no_grad;
  block->forward(input());
  EXPECT_EQ(seen.order.size(), 4U);
}

TEST(Watch, ASecondScopeOnTheSameThreadIsRefused) {
  Linear linear{Init(1, at::kCPU), 8, 4};
  const WatchScope scope(*linear, [](const Watched&) {});
  EXPECT_THROW(WatchScope(*linear, [](const Watched&) {}), c10::Error);
  Seen seen;  // and the first one still stands
  EXPECT_NO_THROW(linear->forward(input()));
}

}  // namespace
}  // namespace stretto::nn
