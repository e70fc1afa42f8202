#include "parallel/gradient_reducer.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/torch.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/error.h"
#include "kernels/kernels.h"
#include "tests/base/failure.h"
#include "tests/distributed/thread_group.h"
#include "tests/parallel/difference.h"

namespace stretto::parallel {
namespace {

using distributed::DistOptions;
using test::difference;
using test::run_ranks;

constexpr int64_t kVocabSize = 3500, kWidth = 64, kInner = 128, kTokens = 12;
const std::vector<std::string> kStrategies{"all_reduce", "sharded", "parameter_server"};

// Ranks are threads here: more threads inside each would only be slower.
class GradientReducerTest : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
  void TearDown() override { at::set_num_threads(threads_before_); }

 private:
  int threads_before_ = at::get_num_threads();
};

// Embedding tied with the output projection, a feed-forward layer and a norm.
struct SmallModel : torch::nn::Module {
  torch::nn::Embedding embedding{nullptr};
  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  torch::Tensor sometimes;  // reached only by loss(…, true)
  std::function<void()> before_embedding = [] {};

  SmallModel() {
    embedding = register_module("embedding", torch::nn::Embedding(kVocabSize, kWidth));
    first = register_module("first", torch::nn::Linear(kWidth, kInner));
    second = register_module("second", torch::nn::Linear(kInner, kWidth));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})));
    sometimes = register_parameter("sometimes", torch::empty({kWidth}));
    // The same on every rank without the generator that all threads share.
    const torch::NoGradGuard no_grad;
    double phase = 0;
    for (auto& parameter : parameters()) {
      const auto i = torch::arange(parameter.numel(), torch::kDouble);
      parameter.copy_((0.1 * torch::sin(i * 1.7 + ++phase)).view(parameter.sizes()));
    }
  }

  // Sum over the tokens of micro-batch j.
  torch::Tensor loss(int64_t j, bool with_sometimes = false) {
    const auto i = torch::arange(kTokens, torch::kLong);
    auto x = embedding((i * 37 + j * 101) % kVocabSize);
    if (x.requires_grad()) {
      x.register_hook([this](const torch::Tensor&) { before_embedding(); });
    }
    if (with_sometimes) x = x + sometimes;
    const auto hidden = norm(x + second(torch::tanh(first(x))));
    const auto logits = torch::matmul(hidden, embedding->weight.t());
    return torch::nn::functional::cross_entropy(
        logits, (i * 53 + j * 29) % kVocabSize,
        torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum));
  }
};

// One rank of a job, with its own copy of everything.
struct Rank {
  SmallModel model;
  optim::Arena arena{model};
  distributed::ProcessGroup group;
  GradientReducer reducer;
  std::unique_ptr<optim::Optimizer> optimizer;
  int64_t steps = 0;

  Rank(const distributed::ProcessGroup& processes, const DistOptions& options)
      : group(processes), reducer(arena, group, options) {
    if (reducer.owned().size() == 0) return;
    optim::OptimOptions adam;
    adam.name = "adam";
    optimizer = optim::make_optimizer(adam, arena, reducer.owned());
  }

  int64_t local(int64_t micro_batches) const {
    return (micro_batches - group.rank() + group.size() - 1) / group.size();
  }

  // Gradients of micro-batches 0 .. n - 1 of update `number`; j is that of rank j % size.
  void accumulate(int64_t n, int64_t number = 0) {
    reducer.begin(local(n));
    for (int64_t i = 0; i < local(n); ++i) micro_batch(i, number);
  }
  void micro_batch(int64_t i, int64_t number = 0) {
    reducer.before_backward(i);
    model.loss(number * 1000 + i * group.size() + group.rank()).backward();
    reducer.after_backward(i);
  }
  void reduce(int64_t n, int64_t number = 0) {
    accumulate(n, number);
    reducer.finish();
  }

  void step(int64_t n) {
    ++steps;
    if (optimizer) {
      optimizer->step(
          arena,
          {.lr = 1e-3, .grad_scale = 1.0 / static_cast<double>(n * kTokens), .number = steps});
    }
    reducer.publish();
  }
  torch::Tensor owned_grads() {
    const auto slice = reducer.owned();
    return arena.grads().narrow(0, slice.begin, slice.size()).clone();
  }
};

// What each rank of a job returned.
template <class Result>
std::vector<Result> on_ranks(int ranks,
                             const std::function<Result(distributed::ProcessGroup)>& body) {
  std::vector<Result> results(static_cast<size_t>(ranks));
  run_ranks(ranks, [&](const distributed::ProcessGroup& group) {
    results[static_cast<size_t>(group.rank())] = body(group);
  });
  return results;
}

using Tensors = std::vector<torch::Tensor>;

Tensors tensors_on_ranks(int ranks,
                         const std::function<torch::Tensor(distributed::ProcessGroup)>& body) {
  return on_ranks<torch::Tensor>(ranks, body);
}

// The summed gradient, as the ranks own it; all_reduce: of rank 0, after comparing all.
torch::Tensor whole(const std::string& strategy, const Tensors& owned) {
  if (strategy == "sharded") return torch::cat(owned);
  if (strategy == "all_reduce") {
    for (const auto& other : owned) EXPECT_TRUE(torch::equal(owned[0], other));
  }
  return owned[0];
}

// Autograd alone: the truth.
torch::Tensor plain_gradient(int64_t micro_batches, int64_t number = 0) {
  SmallModel model;
  optim::Arena arena(model);
  for (int64_t j = 0; j < micro_batches; ++j) model.loss(number * 1000 + j).backward();
  return arena.grads().clone();
}

// Buckets smaller than most tensors of the model.
DistOptions options(const std::string& strategy, bool overlap = true) {
  DistOptions result;
  result.strategy = strategy;
  result.overlap = overlap;
  result.bucket_bytes = 40'000;
  return result;
}

DistOptions deterministic(const std::string& strategy) {
  auto result = options(strategy);
  result.deterministic = true;
  return result;
}

TEST_F(GradientReducerTest, EveryStrategyGivesTheGradientsOfOneProcess) {
  const auto expected = plain_gradient(5);
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (const auto& strategy : kStrategies) {
      for (const bool overlap : {true, false}) {
        const auto owned = tensors_on_ranks(ranks, [&](const distributed::ProcessGroup& group) {
          Rank rank(group, options(strategy, overlap));
          for (int update = 0; update < 3; ++update) rank.reduce(5);  // the first learns the order
          return rank.owned_grads();
        });
        EXPECT_LT(difference(whole(strategy, owned), expected), 1e-6)
            << strategy << " on " << ranks << (overlap ? " with overlap" : "");
      }
    }
  }
}

TEST_F(GradientReducerTest, WeightsAgreeWithOneProcessAfterTenUpdates) {
  const auto train = [](const distributed::ProcessGroup& group, const std::string& strategy) {
    Rank rank(group, options(strategy));
    for (int update = 0; update < 10; ++update) {
      rank.reduce(4, update);
      rank.step(4);
    }
    return rank.arena.params().clone();
  };
  const auto expected = train({}, "all_reduce");
  SmallModel fresh;
  EXPECT_GT(difference(expected, optim::Arena(fresh).params()), 1e-2);
  for (int ranks = 2; ranks <= 4; ++ranks) {
    for (const auto& strategy : kStrategies) {
      const auto params = tensors_on_ranks(
          ranks, [&](const distributed::ProcessGroup& group) { return train(group, strategy); });
      for (const auto& other : params) EXPECT_TRUE(torch::equal(params[0], other)) << strategy;
      EXPECT_LT(difference(params[0], expected), 1e-6) << strategy << " on " << ranks;
    }
  }
}

TEST_F(GradientReducerTest, DeterministicGivesTheBitsOfOneProcess) {
  const auto train = [](const distributed::ProcessGroup& group, const std::string& strategy) {
    Rank rank(group, deterministic(strategy));
    for (const int64_t micro_batches : {5, 2, 7}) {  // some ranks have none
      rank.reduce(micro_batches, micro_batches);
      rank.step(micro_batches);
    }
    return torch::cat({rank.owned_grads(), rank.arena.params()});
  };
  const auto expected = train({}, "all_reduce");
  const int64_t size = expected.numel() / 2;
  EXPECT_GT(expected.narrow(0, 0, size).abs().max().item<float>(), 0);
  for (int ranks = 2; ranks <= 4; ++ranks) {
    for (const auto& strategy : kStrategies) {
      auto results = tensors_on_ranks(
          ranks, [&](const distributed::ProcessGroup& group) { return train(group, strategy); });
      for (auto& result : results) {
        EXPECT_TRUE(torch::equal(result.narrow(0, result.numel() - size, size),
                                 expected.narrow(0, size, size)))
            << "weights, " << strategy << " on " << ranks;
        result = result.narrow(0, 0, result.numel() - size);
      }
      EXPECT_TRUE(torch::equal(whole(strategy, results), expected.narrow(0, 0, size)))
          << "gradients, " << strategy << " on " << ranks;
    }
  }
}

TEST_F(GradientReducerTest, DeterministicIsTheSumOfTheMicroBatches) {
  Rank rank({}, deterministic("all_reduce"));
  rank.reduce(5);
  EXPECT_LT(difference(rank.owned_grads(), plain_gradient(5)), 1e-6);
}

TEST_F(GradientReducerTest, SumOfSquaresHasTheSameBitsForAnyStrategy) {
  const auto values = 3 * torch::sin(torch::arange(1 << 20, torch::kDouble) * 0.37);
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (const auto& strategy : kStrategies) {
      const auto sums = on_ranks<double>(ranks, [&](const distributed::ProcessGroup& group) {
        Rank rank(group, options(strategy));
        auto& grads = rank.arena.grads();
        const auto slice = rank.reducer.owned();  // elsewhere gradients are unspecified
        grads.fill_(NAN);
        grads.narrow(0, slice.begin, slice.size())
            .copy_(values.narrow(0, slice.begin, slice.size()));
        EXPECT_EQ(rank.reducer.slice_begins().back(), rank.arena.size());
        return rank.reducer.sum_of_squares();
      });
      SmallModel model;
      const auto size = optim::Arena(model).size();
      const double expected =
          kernels::sum_of_squares(values.narrow(0, 0, size).to(torch::kFloat).contiguous());
      for (const double sum : sums) EXPECT_EQ(sum, expected) << strategy << " on " << ranks;
    }
  }
}

// Each of two ranks has many of the blocks that a sum is made of.
TEST_F(GradientReducerTest, SumOfSquaresAddsTheBlocksOfASliceOneByOne) {
  constexpr int64_t kBlocks = 40, kSize = kBlocks * kernels::kSumOfSquaresBlock;
  torch::Tensor values = torch::zeros({kSize});
  double expected = 0;
  const auto half = [&](int64_t begin) {
    return kernels::sum_of_squares(values.narrow(0, begin, kSize / 2));
  };
  // Numbers for which the sums of two slices would give other bits.
  for (int step = 1; step < 50 && half(0) + half(kSize / 2) == expected; ++step) {
    values = torch::sin(torch::arange(kSize, torch::kFloat) * (0.01 * step)) + 0.1 * step;
    expected = kernels::sum_of_squares(values);
  }
  ASSERT_NE(half(0) + half(kSize / 2), expected);
  for (const auto& strategy : kStrategies) {
    const auto sums = on_ranks<double>(2, [&](const distributed::ProcessGroup& group) {
      torch::nn::Module model;
      model.register_parameter("w", torch::zeros({kSize}));
      optim::Arena arena(model);
      GradientReducer reducer(arena, group, options(strategy));
      const auto slice = reducer.owned();
      arena.grads().fill_(NAN);
      arena.grads()
          .narrow(0, slice.begin, slice.size())
          .copy_(values.narrow(0, slice.begin, slice.size()));
      return reducer.sum_of_squares();
    });
    for (const double sum : sums) EXPECT_EQ(sum, expected) << strategy;
  }
}

TEST_F(GradientReducerTest, OneInfiniteGradientMakesTheSumInfiniteOnAllRanks) {
  for (const auto& strategy : kStrategies) {
    const auto sums = on_ranks<double>(3, [&](const distributed::ProcessGroup& group) {
      Rank rank(group, options(strategy));
      rank.reducer.begin(1);
      rank.reducer.before_backward(0);
      if (group.rank() == 1) rank.arena.grads()[rank.arena.size() / 2] = INFINITY;
      rank.reducer.after_backward(0);
      rank.reducer.finish();
      return rank.reducer.sum_of_squares();
    });
    for (const double sum : sums) EXPECT_FALSE(std::isfinite(sum)) << strategy;
  }
}

struct Compression {
  std::string name;
  double most;  // relative error: a few half units of the last place
};

TEST_F(GradientReducerTest, CompressedGradientsDifferByTheirRounding) {
  const auto expected = plain_gradient(6);
  for (const auto& [name, most] : {Compression{"bf16", 0x1p-8}, Compression{"fp16", 0x1p-11}}) {
    for (const auto& strategy : kStrategies) {
      for (int ranks = 2; ranks <= 4; ++ranks) {
        const auto owned = tensors_on_ranks(ranks, [&](const distributed::ProcessGroup& group) {
          auto choice = options(strategy);
          choice.compress = name;
          Rank rank(group, choice);
          for (int update = 0; update < 2; ++update) rank.reduce(6);
          EXPECT_EQ(rank.reducer.stats().bytes, rank.arena.size() * 2);
          return rank.owned_grads();
        });
        const double error = difference(whole(strategy, owned), expected);
        EXPECT_LT(error, most) << name << ", " << strategy << " on " << ranks;
        EXPECT_GT(error, most / 32) << name << " was not compressed";
      }
    }
  }
}

TEST_F(GradientReducerTest, GradientsWhoseSumIsAboveTheRangeOfFp16StayFinite) {
  const auto owned = tensors_on_ranks(4, [&](const distributed::ProcessGroup& group) {
    auto choice = options("all_reduce");
    choice.compress = "fp16";
    Rank rank(group, choice);
    rank.reducer.begin(1);
    rank.reducer.before_backward(0);
    rank.arena.grads().fill_(60'000);
    rank.reducer.after_backward(0);
    rank.reducer.finish();
    return rank.owned_grads();
  });
  EXPECT_NEAR(owned[0].min().item<double>(), 240'000, 200);
  EXPECT_NEAR(owned[0].max().item<double>(), 240'000, 200);
}

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

TEST_F(GradientReducerTest, ARankWithoutMicroBatchesJoinsWithZeros) {
  const auto expected = plain_gradient(2);
  for (const auto& strategy : kStrategies) {
    for (const auto& choice :
         {options(strategy), options(strategy, false), deterministic(strategy)}) {
      const auto owned = tensors_on_ranks(4, [&](const distributed::ProcessGroup& group) {
        Rank rank(group, choice);
        for (int update = 0; update < 3; ++update) rank.reduce(2);
        return rank.owned_grads();
      });
      EXPECT_LT(difference(whole(strategy, owned), expected), 1e-6) << strategy;
    }
  }
}

TEST_F(GradientReducerTest, ATensorNotReachedAtFirstIsSummedWhenItIs) {
  const auto owned = tensors_on_ranks(2, [&](const distributed::ProcessGroup& group) {
    Rank rank(group, options("all_reduce"));
    rank.reduce(2);
    rank.reducer.begin(1);
    rank.reducer.before_backward(0);
    rank.model.loss(group.rank(), true).backward();
    rank.reducer.after_backward(0);
    rank.reducer.finish();
    return rank.owned_grads();
  });
  SmallModel model;
  optim::Arena arena(model);
  for (const int64_t j : {0, 1}) model.loss(j, true).backward();
  EXPECT_GT(model.sometimes.grad().norm().item<float>(), 0);
  EXPECT_LT(difference(whole("all_reduce", owned), arena.grads()), 1e-6);
}

// Two passes in each micro-batch: a tensor is ready after its second accumulation.
TEST_F(GradientReducerTest, ATensorIsReadyWhenItWasAccumulatedAsOftenAsInTheFirstMicroBatch) {
  const auto expected = plain_gradient(4);
  const auto owned = tensors_on_ranks(2, [&](const distributed::ProcessGroup& group) {
    Rank rank(group, options("all_reduce"));
    for (int update = 0; update < 3; ++update) {
      rank.reducer.begin(1);
      rank.reducer.before_backward(0);
      rank.model.loss(group.rank()).backward();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // time to send too early
      rank.model.loss(group.rank() + 2).backward();
      rank.reducer.after_backward(0);
      rank.reducer.finish();
    }
    return rank.owned_grads();
  });
  EXPECT_LT(difference(whole("all_reduce", owned), expected), 1e-6);
}

TEST_F(GradientReducerTest, AGradientThatChangesAfterItWasSentIsRefused) {
  run_ranks(2, [&](const distributed::ProcessGroup& group) {
    Rank rank(group, options("all_reduce"));
    rank.reduce(2);
    rank.reducer.begin(1);
    rank.reducer.before_backward(0);
    for (int pass = 0; pass < 2; ++pass) rank.model.loss(0).backward();
    rank.reducer.after_backward(0);
    const Error error = testing::failure(ExitCode::kUsage, [&] { rank.reducer.finish(); });
    EXPECT_NE(error.message().find("dist.overlap = false"), std::string::npos);
    rank.reduce(2);  // and all is well again
  });
}

// One rank fails in micro-batch `at` of update `update`, before or during its backward.
struct Failure {
  int rank;
  int64_t update, at;
  bool in_backward;
};

TEST_F(GradientReducerTest, AbandonOnOneRankLetsAllEndAndLaterUpdatesAgree) {
  const auto train = [](const distributed::ProcessGroup& group, const DistOptions& choice,
                        const Failure& failure) {
    Rank rank(group, choice);
    for (int64_t update = 0; update < 4; ++update) {
      if (group.rank() == failure.rank && group.size() > 1 && update == failure.update) {
        rank.reducer.begin(rank.local(6));
        for (int64_t i = 0; i < failure.at; ++i) rank.micro_batch(i, update);
        rank.model.before_embedding = [] { throw std::runtime_error("out of memory"); };
        rank.reducer.before_backward(failure.at);
        if (failure.in_backward) {
          EXPECT_THROW(rank.model.loss(0).backward(), std::runtime_error);
        }
        rank.model.before_embedding = [] {};
        rank.reducer.abandon();
      } else if (group.size() > 1 && update == failure.update) {
        rank.reduce(6, update);
      }
      rank.reduce(6, update);
      rank.step(6);
    }
    return rank.arena.params().clone();
  };
  const Failure failures[] = {{0, 0, 0, true},  {0, 0, 0, false}, {1, 0, 0, true},
                              {1, 1, 1, false}, {2, 2, 1, true},  {0, 3, 0, true}};
  for (const auto& strategy : kStrategies) {
    for (const auto& choice :
         {options(strategy), options(strategy, false), deterministic(strategy)}) {
      const auto expected = train({}, choice, failures[0]);
      for (const Failure& failure : failures) {
        const auto params = tensors_on_ranks(3, [&](const distributed::ProcessGroup& group) {
          return train(group, choice, failure);
        });
        for (const auto& other : params) EXPECT_TRUE(torch::equal(params[0], other));
        EXPECT_LT(difference(params[0], expected), choice.deterministic ? 1e-30 : 1e-6)
            << strategy << ", rank " << failure.rank << ", update " << failure.update;
      }
    }
  }
}

TEST_F(GradientReducerTest, ALateGradientOfAnAbandonedUpdateIsForgottenWithIt) {
  run_ranks(2, [&](const distributed::ProcessGroup& group) {
    Rank rank(group, options("all_reduce"));
    rank.reduce(2);
    rank.reducer.begin(1);
    rank.reducer.before_backward(0);
    for (int pass = 0; pass < 2; ++pass) rank.model.loss(0).backward();
    rank.reducer.abandon();
    EXPECT_NO_THROW(rank.reduce(2));
  });
}

// A peer that is lost as soon as gradients are summed.
class LostPeer : public test::ThreadTransport {
 public:
  LostPeer() : ThreadTransport(0, std::make_shared<test::ThreadChannel>(2)) {}
  void all_reduce(distributed::Buffer) override {
    throw Error(ExitCode::kPeerLost, "rank 1 is lost", "start again");
  }
  std::shared_ptr<distributed::Transport> duplicate() override {
    return std::make_shared<LostPeer>();
  }
};

TEST_F(GradientReducerTest, ALostPeerIsToldByFinish) {
  for (const bool overlap : {true, false}) {
    Rank rank(distributed::ProcessGroup(std::make_shared<LostPeer>()),
              options("all_reduce", overlap));
    rank.accumulate(2);
    testing::failure(ExitCode::kPeerLost, [&] { rank.reducer.finish(); });
  }
}

TEST_F(GradientReducerTest, AReducerThatIsGoneLeavesNoHooks) {
  SmallModel model;
  optim::Arena arena(model);
  run_ranks(1, [&](const distributed::ProcessGroup&) {
    GradientReducer reducer(arena, distributed::ProcessGroup(std::make_shared<LostPeer>()),
                            options("all_reduce"));
    reducer.begin(1);
    reducer.before_backward(0);
  });
  model.loss(0).backward();
  EXPECT_LT(difference(arena.grads(), plain_gradient(1)), 1e-12);
}

}  // namespace
}  // namespace stretto::parallel
