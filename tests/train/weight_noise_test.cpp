// optim.weight_noise in training: what forward sees, what is stepped, validated and saved.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/random.h"
#include "optim/normal_noise.h"
#include "store/checkpoint.h"
#include "tests/train/toy_task.h"
#include "train/trainer.h"
#include "train/updater.h"

namespace stretto::train {
namespace {

namespace fs = std::filesystem;
using test::events, test::final_hash;

constexpr double kDeviation = 0.5, kRate = 0.05;

UpdaterSetup updater_setup() {
  UpdaterSetup setup;
  setup.run.seed = 7;
  setup.train.update_freq = 2;
  setup.optim = {.name = "sgd", .momentum = 0, .weight_noise = kDeviation};
  setup.precision = {.compute = kernels::Compute::kFp32, .name = "fp32", .why = ""};
  return setup;
}

// Each row of the table: the gradient at w + deviation n, by a second model, and a step from w.
TEST(WeightNoiseInTraining, StepsAreMadeFromTheWeightsWithoutIt) {
  test::ToyTask task, plain;
  optim::Arena arena(task.model()), plain_arena(plain.model());
  Updater updater(task, arena, {}, updater_setup());
  for (int64_t number = 0; number < 4; ++number) {
    const torch::Tensor weights = arena.params().clone();
    const uint64_t key = mix64(mix64(7, static_cast<uint64_t>(number)), 0x776569676874);
    {
      const torch::NoGradGuard no_grad;
      plain_arena.params().copy_(weights);
      plain_arena.params().narrow(0, 0, 12).add_(
          optim::normal_noise("weight", {0, 12}, key, static_cast<float>(kDeviation)));
      plain_arena.zero_grads();
    }
    for (int64_t micro = 2 * number; micro < 2 * number + 2; ++micro) {
      plain.loss(plain.train_batches().load(0, micro), {}).losses.front().backward();
    }
    const auto result = updater.gradients(number, [] { return 0; });
    EXPECT_TRUE(torch::equal(arena.params(), weights)) << number;
    EXPECT_TRUE(torch::allclose(arena.grads(), plain_arena.grads(), 1e-5, 1e-6)) << number;
    updater.step(result, kRate, 1.0, number + 1);
    const torch::Tensor want =
        weights - kRate / result.totals.weights.front() * plain_arena.grads();
    EXPECT_TRUE(torch::allclose(arena.params(), want, 1e-5, 1e-6)) << number;
  }
}

TEST(WeightNoiseInTraining, AFailedUpdateLeavesTheWeightsWithoutIt) {
  struct Failing : test::ToyTask {
    Sums loss(const data::Batch&, const StepContext&) override {
      throw std::runtime_error("no such batch");
    }
  } task;
  optim::Arena arena(task.model());
  Updater updater(task, arena, {}, updater_setup());
  const torch::Tensor weights = arena.params().clone();
  EXPECT_THROW(updater.gradients(0, [] { return 0; }), std::runtime_error);
  EXPECT_TRUE(torch::equal(arena.params(), weights));
}

/// Remembers the weights of each update's last forward pass, and those of each validation.
class Watching : public test::ToyTask {
 public:
  Sums loss(const data::Batch& batch, const StepContext& context) override {
    in_forward[context.update] = weights();
    return ToyTask::loss(batch, context);
  }
  Validation validate() override {
    validated.push_back(weights());
    return ToyTask::validate();
  }
  torch::Tensor weights() {
    std::vector<torch::Tensor> all;
    for (const auto& parameter : model().parameters()) all.push_back(parameter.detach().flatten());
    return torch::cat(all);
  }

  std::map<int64_t, torch::Tensor> in_forward;
  std::vector<torch::Tensor> validated;
};

class WeightNoiseRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() /
            ("stretto_weight_noise_" + std::to_string(::getpid()) + "_" +
             ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  /// Twelve updates, validated and saved after every fourth.
  TrainerSetup setup(const std::string& name, double deviation) {
    auto setup = test::toy_setup(root_ / name);
    setup.eval.every = 4;
    setup.optim.weight_noise = deviation;
    return setup;
  }

  fs::path root_;
};

/// The model's tensors in the checkpoint of step 12, as Watching::weights() has them.
torch::Tensor saved_weights(Watching& task, const TrainerSetup& run) {
  const auto loaded =
      store::CheckpointStore::load(store::CheckpointStore(run.run_directory).path_of(12));
  std::map<std::string, std::string> bytes;
  for (const auto& [stem, file] : loaded.files) {
    if (stem != "model") continue;
    for (const auto& tensor : file.tensors()) {
      bytes[tensor.name] = std::string(tensor.bytes.data(), tensor.bytes.size());
    }
  }
  std::vector<torch::Tensor> all;
  for (const auto& item : task.model().named_parameters()) {
    all.push_back(torch::from_blob(bytes.at(item.key()).data(), {item.value().numel()}).clone());
  }
  return torch::cat(all);
}

TEST_F(WeightNoiseRuns, ValidationsAndCheckpointsHaveNone) {
  const auto noisy = setup("noisy", 0.2), clean = setup("clean", 0);
  Watching task, other;
  ASSERT_EQ(Trainer(task, noisy).run(), ExitCode::kOk);
  ASSERT_EQ(Trainer(other, clean).run(), ExitCode::kOk);
  EXPECT_NE(final_hash(noisy), final_hash(clean));
  ASSERT_EQ(task.validated.size(), 3U);
  // The update behind a validation begins with its weights, and computes with others: twelve
  // numbers of the matrix differ, three of the bias do not. Without noise none does.
  for (size_t i = 0; i + 1 < 3; ++i) {
    const auto next = static_cast<int64_t>(4 * i + 4);
    const torch::Tensor differs = task.in_forward.at(next).ne(task.validated[i]);
    EXPECT_EQ(differs.sum().item<int64_t>(), 12) << i;
    EXPECT_FALSE(differs.slice(0, 12).any().item<bool>()) << i;
    EXPECT_TRUE(torch::equal(other.in_forward.at(next), other.validated[i])) << i;
  }
  EXPECT_TRUE(torch::equal(saved_weights(task, noisy), task.validated.back()));
  EXPECT_TRUE(torch::equal(task.weights(), task.validated.back()));
}

TEST_F(WeightNoiseRuns, ARunThatIsCutInPiecesHasTheSameBits) {
  const auto whole = setup("whole", 0.2), pieces = setup("pieces", 0.2);
  Watching undisturbed;
  ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);
  for (const int64_t last : {3, 7, -1}) {
    Watching task;
    task.signal_at = last;
    ASSERT_EQ(Trainer(task, pieces).run(), last < 0 ? ExitCode::kOk : ExitCode::kInterrupted);
  }
  EXPECT_EQ(final_hash(pieces), final_hash(whole));
}

}  // namespace
}  // namespace stretto::train
