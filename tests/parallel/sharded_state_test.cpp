#include "parallel/sharded_state.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "tests/distributed/thread_group.h"
#include "tests/train/toy_task.h"
#include "train/updater.h"

namespace stretto::parallel {
namespace {

using stretto::test::run_ranks;

constexpr int64_t kFloatBytes = 4, kSliceUnit = 65'536;  // sharded cuts at multiples of it

/// A model of eight units and a little.
class WideTask : public train::test::ToyTask {
 public:
  torch::nn::Module& model() override { return *net_; }

 private:
  torch::nn::Linear net_{torch::nn::Linear(1024, 512)};
};

/// Bytes of optimizer state on each rank.
std::vector<int64_t> state_bytes(const std::string& optimizer, const std::string& strategy,
                                 int ranks) {
  std::vector<int64_t> bytes(static_cast<size_t>(ranks));
  run_ranks(ranks, [&](const distributed::ProcessGroup& group) {
    WideTask task;
    optim::Arena arena(task.model());
    train::UpdaterSetup setup;
    setup.optim.name = optimizer;
    setup.dist.strategy = strategy;
    setup.precision = {.compute = kernels::Compute::kFp32, .name = "fp32", .why = ""};
    const train::Updater updater(task, arena, group, setup);
    bytes[static_cast<size_t>(group.rank())] = updater.state_bytes();
  });
  return bytes;
}

TEST(ShardedState, IsDividedByTheNumberOfRanks) {
  struct Row {
    const char* optimizer;
    int64_t buffers;  // of the arena's size
  };
  for (const auto& row : {Row{"adam", 2}, Row{"sgd", 1}}) {
    const int64_t whole = state_bytes(row.optimizer, "sharded", 1).front();
    EXPECT_GE(whole, row.buffers * 1024 * 512 * kFloatBytes) << row.optimizer;
    for (int ranks = 2; ranks <= 4; ++ranks) {
      SCOPED_TRACE(std::string(row.optimizer) + " on " + std::to_string(ranks));
      int64_t sum = 0;
      for (const int64_t bytes : state_bytes(row.optimizer, "sharded", ranks)) {
        EXPECT_LE(bytes, whole / ranks + row.buffers * kSliceUnit * kFloatBytes);
        sum += bytes;
      }
      EXPECT_EQ(sum, whole);
      for (const int64_t bytes : state_bytes(row.optimizer, "all_reduce", ranks)) {
        EXPECT_EQ(bytes, whole);
      }
    }
  }
}

TEST(ShardedState, OnlyTheParameterServerHasAny) {
  const auto bytes = state_bytes("adam", "parameter_server", 3);
  EXPECT_GT(bytes[0], 0);
  EXPECT_EQ(bytes[1], 0);
  EXPECT_EQ(bytes[2], 0);
}

/// Rank r of three owns begins[r] .. begins[r + 1]; the last one nothing.
const std::vector<int64_t> kBegins{0, 7, 10, 10};

ShardedState::Setup sliced(int64_t rank, int64_t chunk) {
  const auto r = static_cast<size_t>(rank);
  return {.sliced = true,
          .slice_begins = kBegins,
          .owned = {kBegins[r], kBegins[r + 1]},
          .chunk = chunk};
}

/// A flat tensor whose elements are their places in the arena, and two numbers that all ranks have.
std::vector<optim::StateTensor> tensors_of(optim::Slice owned) {
  return {{"moment", torch::arange(owned.begin, owned.end, torch::kFloat32), true},
          {"norms", torch::tensor({2.5F, -1.0F}), false}};
}

TEST(ShardedState, SlicesComeTogetherOnRankZeroInTurnsOfAnyLength) {
  for (const int64_t chunk : {1, 2, 3, 5, 7, 9, 30, 1000}) {
    run_ranks(3, [&](const distributed::ProcessGroup& group) {
      const auto setup = sliced(group.rank(), chunk);
      const ShardedState state(group, setup);
      const auto whole = state.gather(tensors_of(setup.owned));
      if (!group.is_root()) {
        EXPECT_TRUE(whole.empty());
        return;
      }
      ASSERT_EQ(whole.size(), 2U);
      EXPECT_EQ(whole[0].name, "moment");
      EXPECT_TRUE(torch::equal(whole[0].values, torch::arange(10, torch::kFloat32))) << chunk;
      EXPECT_EQ(whole[1].name, "norms");
      EXPECT_FALSE(whole[1].flat);
      EXPECT_TRUE(torch::equal(whole[1].values, torch::tensor({2.5F, -1.0F})));
    });
  }
}

TEST(ShardedState, EachRankGetsItsSliceBack) {
  for (const int64_t chunk : {1, 3, 4, 7, 10, 1000}) {
    run_ranks(3, [&](const distributed::ProcessGroup& group) {
      const auto setup = sliced(group.rank(), chunk);
      const ShardedState state(group, setup);
      const auto want = tensors_of(setup.owned);
      const auto mine = tensors_of(setup.owned);
      for (auto& tensor : mine) tensor.values.fill_(NAN);
      state.scatter(group.is_root() ? tensors_of({0, 10}) : std::vector<optim::StateTensor>{},
                    mine);
      for (size_t i = 0; i < mine.size(); ++i) {
        EXPECT_TRUE(torch::equal(mine[i].values, want[i].values)) << mine[i].name << ", " << chunk;
      }
    });
  }
}

/// State of elements 2 to 4 and 6 to 8 of the arena alone: their places in the arena.
std::vector<optim::StateTensor> held_tensors_of(optim::Slice owned) {
  const optim::HeldElements held(std::vector<optim::Slice>{{2, 5}, {6, 9}});
  const optim::Slice place = held.place_of(owned);
  const torch::Tensor all = torch::tensor({2.F, 3.F, 4.F, 6.F, 7.F, 8.F});
  return {{"moment", all.narrow(0, place.begin, place.size()).clone(), true, held}};
}

TEST(ShardedState, AStateOfSomeElementsTravelsAsOneOfAllDoes) {
  for (const int64_t chunk : {1, 2, 3, 5, 1000}) {
    run_ranks(3, [&](const distributed::ProcessGroup& group) {
      const auto setup = sliced(group.rank(), chunk);
      const ShardedState state(group, setup);
      const auto want = held_tensors_of(setup.owned), mine = held_tensors_of(setup.owned);
      const auto whole = state.gather(mine), expected = held_tensors_of({0, 10});
      if (group.is_root()) {
        EXPECT_TRUE(torch::equal(whole[0].values, expected[0].values)) << chunk;
        EXPECT_EQ(whole[0].held.count_before(10), 6);
      }
      mine[0].values.fill_(NAN);
      state.scatter(group.is_root() ? expected : std::vector<optim::StateTensor>{}, mine);
      EXPECT_TRUE(torch::equal(mine[0].values, want[0].values)) << chunk;
      EXPECT_EQ(state.empty(mine)[0].values.numel(), 6);
    });
  }
}

TEST(ShardedState, StateThatIsNotSlicedIsWholeOnRankZeroAlready) {
  run_ranks(3, [&](const distributed::ProcessGroup& group) {
    const auto setup =
        ShardedState::Setup{.sliced = false, .slice_begins = kBegins, .owned = {0, 10}, .chunk = 4};
    const ShardedState state(group, setup);
    const auto mine = tensors_of(setup.owned);
    const auto whole = state.gather(mine);
    ASSERT_EQ(whole.size(), group.is_root() ? 2U : 0U);
    if (group.is_root()) {
      EXPECT_TRUE(whole[0].values.is_same(mine[0].values));
    }
  });
}

TEST(ShardedState, EmptyStateHasTheShapesOfAllRanksTogether) {
  const ShardedState state({}, sliced(1, 4));
  const auto empty = state.empty(tensors_of({7, 10}));
  ASSERT_EQ(empty.size(), 2U);
  EXPECT_TRUE(torch::equal(empty[0].values, torch::zeros({10})));
  EXPECT_TRUE(empty[0].flat);
  EXPECT_TRUE(torch::equal(empty[1].values, torch::zeros({2})));
  EXPECT_EQ(empty[1].name, "norms");
}

}  // namespace
}  // namespace stretto::parallel
