// Updates of a task that prepares its tensors: the same bits as of one that makes them in loss().
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/distributed/thread_group.h"
#include "tests/train/toy_task.h"
#include "train/updater.h"

namespace stretto::train {
namespace {

/// As test::ToyTask, with its made-up inputs prepared.
class PreparedToy : public test::ToyTask {
 public:
  Prepared prepare(data::Batch batch) const override {
    std::this_thread::sleep_for(pause);
    Prepared made(std::move(batch));
    for (const int64_t id : made.batch().sample_ids) {
      if (id == broken) throw Error(ExitCode::kBadData, "the sample is broken", "leave it out");
      auto x = torch::zeros({4}), y = torch::zeros({3});
      RandomStream random(static_cast<uint64_t>(id) + 100);
      for (int i = 0; i < 4; ++i) x[i] = random.uniform();
      for (int i = 0; i < 3; ++i) y[i] = random.uniform();
      made.add(x);
      made.add(y);
    }
    return made;
  }
  Sums loss(const Prepared& batch, const StepContext& context) override {
    if (context.update == no_memory_at && batch.batch().num_sequences() > 1) throw std::bad_alloc();
    auto& map = dynamic_cast<torch::nn::LinearImpl&>(model());
    std::vector<torch::Tensor> losses;
    for (size_t i = 0; i < batch.batch().sample_ids.size(); ++i) {
      losses.push_back((map.forward(batch.tensor(2 * i)) - batch.tensor(2 * i + 1)).square().sum());
    }
    return test::toy_sums(torch::stack(losses).sum(), batch);
  }

  std::chrono::milliseconds pause{0};
  int64_t broken = -1;        ///< sample
  int64_t no_memory_at = -1;  ///< update whose micro-batches are split
};

struct ToyUpdates {
  data::Loading loading = {};
  int size = 1;
  int64_t update_freq = 3;
};

struct ToyUpdate {
  uint64_t weights = 0;  ///< their hash behind the update
  double loss = 0;
  bool operator==(const ToyUpdate&) const = default;
};

/// Five updates, as rank 0 sees them.
template <class Task>
std::vector<ToyUpdate> updates_of(const ToyUpdates& how, int64_t no_memory_at = -1) {
  std::vector<ToyUpdate> updates;
  stretto::test::run_ranks(how.size, [&](const distributed::ProcessGroup& group) {
    static std::mutex making;  // libtorch's seed is one for all threads
    std::unique_lock lock(making);
    Task task;
    lock.unlock();
    if constexpr (requires { task.no_memory_at; }) task.no_memory_at = no_memory_at;
    optim::Arena arena(task.model());
    UpdaterSetup setup;
    setup.train.update_freq = how.update_freq;
    setup.optim = {.name = "sgd", .momentum = 0};
    setup.precision = {.compute = kernels::Compute::kFp32, .name = "fp32", .why = ""};
    setup.loading = how.loading;
    Updater updater(task, arena, group, setup);
    for (int64_t update = 0; update < 5; ++update) {
      const auto result = updater.gradients(update, [] { return 0; });
      updater.step(result, 0.05, 1, update + 1);
      if (group.is_root()) updates.push_back({arena.weights_hash(), result.totals.loss()});
    }
  });
  return updates;
}

TEST(PreparedUpdates, HaveTheBitsOfATaskThatPreparesNothing) {
  const auto expected = updates_of<test::ToyTask>({});
  for (const data::Loading& loading :
       {data::Loading{.depth = 1}, data::Loading{.depth = 8, .threads = 4}}) {
    EXPECT_EQ(updates_of<PreparedToy>({.loading = loading}), expected);
  }
}

TEST(PreparedUpdates, OfProcessesThatShareMicroBatchesHaveThemToo) {
  const ToyUpdates shared{.loading = {.depth = 4, .threads = 3}, .size = 2, .update_freq = 1};
  EXPECT_EQ(updates_of<PreparedToy>(shared), updates_of<test::ToyTask>(shared));
}

TEST(PreparedUpdates, ASplitMicroBatchHasTheTensorsOfItsHalves) {
  const auto whole = updates_of<PreparedToy>({});
  const auto split = updates_of<PreparedToy>({}, /*no_memory_at=*/2);
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(split[i].loss, whole[i].loss, 1e-6 * whole[i].loss) << "update " << i;
  }
}

TEST(PreparedUpdates, SayHowLongTheyWaited) {
  PreparedToy task;
  task.pause = std::chrono::milliseconds(5);
  optim::Arena arena(task.model());
  UpdaterSetup setup;
  setup.train.update_freq = 4;
  setup.precision = {.compute = kernels::Compute::kFp32, .name = "fp32", .why = ""};
  setup.loading = {.depth = 1};  // a batch is not begun before the one in front of it was taken
  Updater updater(task, arena, {}, setup);
  const auto result = updater.gradients(0, [] { return 0; });
  EXPECT_GE(result.data_wait_seconds, 3 * 0.005);
  EXPECT_GE(result.seconds, result.data_wait_seconds);
}

TEST(PreparedUpdates, AFailureToPrepareIsOneOfTheUpdate) {
  PreparedToy task;
  task.broken = task.train_batches().load(0, 4).sample_ids.back();
  optim::Arena arena(task.model());
  UpdaterSetup setup;
  setup.train.update_freq = 2;
  setup.precision = {.compute = kernels::Compute::kFp32, .name = "fp32", .why = ""};
  setup.loading = {.depth = 8, .threads = 4};
  Updater updater(task, arena, {}, setup);
  const auto go_on = [] { return 0; };
  EXPECT_TRUE(updater.gradients(0, go_on).finite);
  EXPECT_TRUE(updater.gradients(1, go_on).finite);
  const Error error =
      stretto::testing::failure(ExitCode::kBadData, [&] { updater.gradients(2, go_on); });
  EXPECT_NE(std::string(error.what()).find("the sample is broken"), std::string::npos);
}

}  // namespace
}  // namespace stretto::train
