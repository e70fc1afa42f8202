#include "parallel/gradient_reducer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "kernels/kernels.h"
#include "tests/base/failure.h"
#include "tests/distributed/thread_group.h"
#include "tests/parallel/difference.h"
#include "tests/parallel/small_job.h"

namespace stretto::parallel {
namespace {

using distributed::DistOptions;
using test::difference;
using test::run_ranks;
using test::small_job::deterministic, test::small_job::GradientReducerTest;
using test::small_job::kStrategies, test::small_job::on_ranks, test::small_job::options;
using test::small_job::plain_gradient, test::small_job::Rank, test::small_job::SmallModel;
using test::small_job::tensors_on_ranks, test::small_job::whole;

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
