// `batch_hash` of metrics.jsonl is a contract: XXH3-64 of the little-endian 64-bit sample ids of
// the global batch, in order, as 16 hexadecimal digits. Here it is computed from the ids.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <mutex>

#include "base/hash.h"
#include "base/random.h"
#include "data/pairs/pair_columns.h"
#include "report/metrics_log.h"
#include "tests/distributed/thread_group.h"
#include "tests/train/bare_task.h"
#include "train/trainer.h"
#include "train/updater.h"

namespace stretto::train {
namespace {

constexpr int64_t kBatches = 8, kUpdateFreq = 3;
constexpr int64_t kUpdatesAnEpoch = 3;  // of 3 + 3 + 2 micro-batches

/// Micro-batches of one to four samples, in another order each epoch. The ids fill all eight bytes.
class WideIds : public data::BatchSource {
 public:
  int64_t num_batches() const override { return kBatches; }
  data::Batch load(int64_t epoch, int64_t index) const override {
    const auto number = static_cast<int64_t>(Permutation(
        kBatches, mix64(3, static_cast<uint64_t>(epoch)))(static_cast<uint64_t>(index)));
    data::Batch batch = data::pair_batch();
    for (int64_t i = 0; i <= number % 4; ++i) {
      batch.sample_ids.push_back(int64_t{0x0102030405060708} * (number + 1) + i);
      for (auto* side : {&data::source(batch), &data::target(batch)}) {
        side->values.push_back(number);
        side->offsets.push_back(static_cast<int32_t>(i) + 1);
      }
    }
    return batch;
  }
};

class OneWeight : public stretto::test::BareTask {
 public:
  torch::nn::Module& model() override { return *net_; }
  const data::BatchSource& train_batches() override { return source_; }
  Sums loss(const Prepared& batch, const StepContext&) override {
    return sums((net_->weight - 1).square().sum() * data::target(batch).num_rows(), batch);
  }

 private:
  torch::nn::Linear net_{torch::nn::LinearOptions(1, 1).bias(false)};
  WideIds source_;
};

/// What the contract says of update `number`, from 0.
uint64_t promised(int64_t number) {
  const int64_t epoch = number / kUpdatesAnEpoch;
  const int64_t begin = number % kUpdatesAnEpoch * kUpdateFreq;
  std::string bytes;
  for (int64_t index = begin; index < std::min(begin + kUpdateFreq, kBatches); ++index) {
    for (const int64_t id : WideIds().load(epoch, index).sample_ids) {
      for (int byte = 0; byte < 8; ++byte) bytes += static_cast<char>(id >> 8 * byte & 0xff);
    }
  }
  return xxh3_64(bytes);
}

TEST(BatchHash, OfEachUpdateIsThatOfTheIdsForAnyNumberOfProcesses) {
  for (const int size : {1, 2, 3, 4, 7}) {  // with 2 and 7 some are shared
    std::mutex mutex;
    int ranks = 0;
    stretto::test::run_ranks(size, [&](distributed::ProcessGroup group) {
      OneWeight task;
      optim::Arena arena(task.model());
      UpdaterSetup setup;
      setup.train.update_freq = kUpdateFreq;
      Updater updater(task, arena, std::move(group), setup);
      for (int64_t number = 0; number < 2 * kUpdatesAnEpoch + 1; ++number) {
        const auto result = updater.gradients(number, [] { return 0; });
        const std::lock_guard lock(mutex);
        EXPECT_EQ(result.batch_hash, promised(number)) << "update " << number << " of " << size;
      }
      const std::lock_guard lock(mutex);
      ++ranks;
    });
    EXPECT_EQ(ranks, size);
  }
}

TEST(BatchHash, StandsInTheMetricsAsSixteenDigits) {
  const auto run =
      std::filesystem::temp_directory_path() / ("stretto_batch_hash_" + std::to_string(::getpid()));
  std::filesystem::create_directories(run);
  TrainerSetup setup;
  setup.train.max_steps = 7;
  setup.train.update_freq = kUpdateFreq;
  setup.report = {.every = 1, .tensorboard = false, .html = false};
  setup.run_directory = run;
  setup.identity = {.run_id = "test", .config_hash = "hash"};
  OneWeight task;
  ASSERT_EQ(Trainer(task, setup).run(), ExitCode::kOk);
  int64_t updates = 0;
  for (const auto& event : report::read_metrics(run / "metrics.jsonl")) {
    if (event.event != "train") continue;
    EXPECT_EQ(event.batch_hash.value(), hex64(promised(updates++)));
    EXPECT_EQ(event.batch_hash->size(), 16U);
  }
  EXPECT_EQ(updates, 7);
  std::filesystem::remove_all(run);
}

}  // namespace
}  // namespace stretto::train
