// optim.weight_noise in training: what forward sees, what is stepped, validated and saved.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <stdexcept>
#include <string>

#include "base/random.h"
#include "optim/normal_noise.h"
#include "tests/train/toy_runs.h"
#include "train/trainer.h"
#include "train/updater.h"

namespace stretto::train {
namespace {

using test::final_hash, test::Remembering;

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
      plain.loss(plain.prepare(plain.train_batches().load(0, micro)), {}).losses.front().backward();
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
    Sums loss(const Prepared&, const StepContext&) override {
      throw std::runtime_error("no such batch");
    }
  } task;
  optim::Arena arena(task.model());
  Updater updater(task, arena, {}, updater_setup());
  const torch::Tensor weights = arena.params().clone();
  EXPECT_THROW(updater.gradients(0, [] { return 0; }), std::runtime_error);
  EXPECT_TRUE(torch::equal(arena.params(), weights));
}

class WeightNoiseRuns : public test::ToyRuns {
 protected:
  TrainerSetup setup(const std::string& name, double deviation) const {
    auto setup = ToyRuns::setup(name);
    setup.optim.weight_noise = deviation;
    return setup;
  }
};

TEST_F(WeightNoiseRuns, ValidationsAndCheckpointsHaveNone) {
  const auto noisy = setup("noisy", 0.2), clean = setup("clean", 0);
  Remembering task, other;
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
  EXPECT_TRUE(torch::equal(test::values_of(test::tensors_of(noisy), "model:", task),
                           task.validated.back()));
  EXPECT_TRUE(torch::equal(task.weights(), task.validated.back()));
}

TEST_F(WeightNoiseRuns, ARunThatIsCutInPartsHasTheSameBits) {
  const auto whole = setup("whole", 0.2), parts = setup("parts", 0.2);
  Remembering undisturbed;
  ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);
  EXPECT_EQ(hash_of_run_in_parts(parts), final_hash(whole));
}

}  // namespace
}  // namespace stretto::train
