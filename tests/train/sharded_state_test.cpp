#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/train/thread_group.h"
#include "tests/train/toy_task.h"
#include "train/updater.h"

namespace stretto::train {
namespace {

constexpr int64_t kFloatBytes = 4, kSliceUnit = 65'536;  // sharded cuts at multiples of it

/// A model of eight units and a little.
class WideTask : public test::ToyTask {
 public:
  torch::nn::Module& model() override { return *net_; }

 private:
  torch::nn::Linear net_{torch::nn::Linear(1024, 512)};
};

/// Bytes of optimizer state on each rank.
std::vector<int64_t> state_bytes(const std::string& optimizer, const std::string& strategy,
                                 int ranks) {
  std::vector<int64_t> bytes(static_cast<size_t>(ranks));
  stretto::test::run_ranks(ranks, [&](const dist::ProcessGroup& group) {
    WideTask task;
    optim::Arena arena(task.model());
    UpdaterSetup setup;
    setup.optim.name = optimizer;
    setup.dist.strategy = strategy;
    setup.precision = {.compute = kernels::Compute::kFp32, .name = "fp32", .why = ""};
    const Updater updater(task, arena, group, setup);
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

}  // namespace
}  // namespace stretto::train
