#include <gtest/gtest.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/distributed/thread_group.h"
#include "tests/parallel/small_job.h"

namespace stretto::parallel {
namespace {

using test::run_ranks;
using test::small_job::deterministic, test::small_job::GradientReducerTest;
using test::small_job::kStrategies, test::small_job::options, test::small_job::Rank;
using test::small_job::SmallModel;

TEST_F(GradientReducerTest, TheLearnedOrderIsThatOfReadinessOnEveryRank) {
  // What autograd itself says, by hooks of the test.
  SmallModel model;
  optim::Arena arena(model);
  std::vector<size_t> expected;
  std::vector<std::shared_ptr<torch::autograd::Node>> nodes;
  for (size_t slot = 0; slot < arena.slots().size(); ++slot) {
    using torch::autograd::variable_list;
    nodes.push_back(torch::autograd::impl::grad_accumulator(
        model.named_parameters()[arena.slots()[slot].name]));
    nodes.back()->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [&expected, slot](const variable_list& outputs, const variable_list&) {
          expected.push_back(slot);
          return outputs;
        }));
  }
  model.loss(0).backward();
  ASSERT_EQ(expected.size() + 1, arena.slots().size());
  for (size_t slot = 0; slot < arena.slots().size(); ++slot) {
    if (arena.slots()[slot].name == "sometimes") expected.push_back(slot);  // never ready
  }
  EXPECT_EQ(arena.slots()[expected[expected.size() - 2]].name, "embedding.weight");

  std::vector<size_t> reversed(expected.size());
  for (size_t i = 0; i < reversed.size(); ++i) reversed[i] = reversed.size() - 1 - i;
  run_ranks(3, [&](const distributed::ProcessGroup& group) {
    Rank rank(group, options("all_reduce"));
    EXPECT_EQ(rank.reducer.order(), reversed);
    rank.reduce(2);  // rank 2 has no micro-batch to learn from
    EXPECT_EQ(rank.reducer.order(), expected);
  });
}

bool comes_true(const std::function<bool()>& condition, int milliseconds) {
  for (int i = 0; i < milliseconds && !condition(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

TEST_F(GradientReducerTest, BucketsLeaveDuringTheLastBackwardAndNotBefore) {
  for (const bool overlap : {true, false}) {
    const auto channel = std::make_shared<test::ThreadChannel>(2);
    run_ranks(channel, [&](const distributed::ProcessGroup& group) {
      Rank rank(group, options("all_reduce", overlap));
      rank.reduce(6);
      group.barrier();  // until both have left the first update
      const int64_t before = channel->next->gradient_collectives;
      group.barrier();
      const auto sent = [&] { return channel->next->gradient_collectives > before; };
      rank.reducer.begin(3);
      for (int64_t i = 0; i < 3; ++i) {
        // Layers above the embedding are ready here, and the embedding is not.
        const bool expected = overlap && i == 2;
        rank.model.before_embedding = [&] {
          EXPECT_EQ(comes_true(sent, expected ? 5000 : 20), expected) << "micro-batch " << i;
        };
        rank.micro_batch(i);
        group.barrier();
      }
      rank.reducer.finish();
      EXPECT_TRUE(sent());
    });
  }
}

TEST_F(GradientReducerTest, StatsCountBucketsBytesAndTime) {
  run_ranks(2, [&](const distributed::ProcessGroup& group) {
    auto choice = options("all_reduce", false);
    choice.bucket_bytes = 1 << 30;
    Rank rank(group, choice);
    rank.reduce(2);
    EXPECT_EQ(rank.reducer.stats().buckets, 2);  // matrices and vectors
    EXPECT_EQ(rank.reducer.stats().bytes, rank.arena.size() * 4);
    EXPECT_GT(rank.reducer.stats().seconds(), 0);
  });
  for (const auto& choice : {options("all_reduce"), deterministic("all_reduce")}) {
    Rank alone({}, choice);
    alone.reduce(2);
    alone.step(2);
    EXPECT_EQ(alone.reducer.stats().bytes, 0);
    EXPECT_EQ(alone.reducer.stats().seconds(), 0);
  }
}

TEST_F(GradientReducerTest, NothingIsHiddenWhereTheTrainingThreadSends) {
  for (const auto& strategy : kStrategies) {
    for (const auto& choice : {options(strategy, false), deterministic(strategy)}) {
      run_ranks(2, [&](const distributed::ProcessGroup& group) {
        Rank rank(group, choice);
        for (int update = 0; update < 3; ++update) {
          rank.accumulate(6);
          // Rounds of dist.deterministic go between micro-batches, and count.
          EXPECT_EQ(rank.reducer.stats().wait_seconds > 0, choice.deterministic);
          rank.reducer.finish();
          rank.step(6);
          EXPECT_GT(rank.reducer.stats().wait_seconds, 0);
          EXPECT_EQ(rank.reducer.stats().seconds(), rank.reducer.stats().wait_seconds) << strategy;
        }
      });
    }
  }
}

TEST_F(GradientReducerTest, WhatLeavesDuringBackwardIsHiddenAndTheRestIsWaitedFor) {
  const auto channel = std::make_shared<test::ThreadChannel>(2);
  run_ranks(channel, [&](const distributed::ProcessGroup& group) {
    Rank rank(group, options("all_reduce"));
    rank.reduce(2);
    group.barrier();
    const int64_t before = channel->next->gradient_collectives;
    group.barrier();
    rank.reducer.begin(1);
    // Backward goes on only when a bucket of each rank is on its way.
    rank.model.before_embedding = [&] {
      EXPECT_TRUE(
          comes_true([&] { return channel->next->gradient_collectives >= before + 2; }, 5000));
    };
    rank.micro_batch(0);
    rank.reducer.finish();
    const auto stats = rank.reducer.stats();
    EXPECT_GT(stats.hidden_seconds, 0);
    EXPECT_GT(stats.wait_seconds, 0);
    EXPECT_EQ(stats.seconds(), stats.hidden_seconds + stats.wait_seconds);
  });
}

TEST_F(GradientReducerTest, TheWayOfTheParametersIsWaitedFor) {
  for (const auto& strategy : kStrategies) {
    run_ranks(2, [&](const distributed::ProcessGroup& group) {
      Rank rank(group, options(strategy));
      rank.reduce(2);
      const auto gradients = rank.reducer.stats();
      rank.step(2);
      const auto all = rank.reducer.stats();
      EXPECT_EQ(all.wait_seconds > gradients.wait_seconds, strategy != "all_reduce") << strategy;
      EXPECT_EQ(all.hidden_seconds, gradients.hidden_seconds) << strategy;
      rank.reducer.begin(1);
      EXPECT_EQ(rank.reducer.stats().seconds(), 0) << "an update counts its own";
      rank.micro_batch(0);
      rank.reducer.finish();
    });
  }
}

}  // namespace
}  // namespace stretto::parallel
