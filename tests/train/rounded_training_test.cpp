// compress.quantise in training: forward sees rounded weights, and steps are made from others.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>

#include "compress/quantise.h"
#include "compress/rounded_weights.h"
#include "tests/train/toy_runs.h"
#include "train/trainer.h"
#include "train/updater.h"

namespace stretto::train {
namespace {

using test::final_hash, test::Remembering, test::tensors_of, test::values_of;

constexpr double kStep = 0.05;

compress::QuantiseOptions three_bits() {
  return {.bits = 3};
}

/// The toy's numbers with its matrix [3, 4] rounded.
torch::Tensor rounded(const torch::Tensor& weights) {
  torch::Tensor all = weights.to(torch::kFloat).clone();
  all.narrow(0, 0, 12).copy_(compress::nearest(all.narrow(0, 0, 12).view({3, 4}).contiguous(),
                                               compress::format_of(three_bits()))
                                 .view({12}));
  return all.to(weights.scalar_type());
}

// Each row of the table: the gradient at the rounded weights, and a step from those that are not.
TEST(RoundedTraining, StepsAreMadeFromTheWeightsThatAreNotRounded) {
  test::ToyTask task, plain;
  optim::Arena arena(task.model()), plain_arena(plain.model());
  UpdaterSetup setup;
  setup.run.seed = 7;
  setup.train.update_freq = 2;
  setup.optim = {.name = "sgd", .momentum = 0};
  setup.precision = {.compute = kernels::Compute::kFp32, .name = "fp32", .why = ""};
  setup.compress.quantise = three_bits();
  Updater updater(task, arena, {}, setup);
  for (int64_t number = 0; number < 4; ++number) {
    updater.train_after(number);
    const torch::Tensor weights = arena.params().clone();
    {
      const torch::NoGradGuard no_grad;
      plain_arena.params().copy_(rounded(weights));
      plain_arena.zero_grads();
    }
    for (int64_t micro = 2 * number; micro < 2 * number + 2; ++micro) {
      plain.loss(plain.prepare(plain.train_batches().load(0, micro)), {}).losses.front().backward();
    }
    const auto result = updater.gradients(number, [] { return 0; });
    EXPECT_TRUE(torch::equal(arena.params(), weights)) << number;
    EXPECT_TRUE(torch::allclose(arena.grads(), plain_arena.grads(), 1e-5, 1e-6)) << number;
    updater.step(result, kStep, 1.0, number + 1);
    const torch::Tensor want =
        weights - kStep / result.totals.weights.front() * plain_arena.grads();
    EXPECT_TRUE(torch::allclose(arena.params(), want, 1e-5, 1e-6)) << number;
  }
}

class RoundedRuns : public test::ToyRuns {
 protected:
  TrainerSetup setup(const std::string& name) const {
    auto setup = ToyRuns::setup(name);
    setup.compress.quantise = three_bits();
    return setup;
  }
};

TEST_F(RoundedRuns, ValidationsSeeRoundedWeightsAndCheckpointsDoNot) {
  const auto run = setup("run");
  Remembering task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  EXPECT_TRUE(torch::equal(values_of(tensors_of(run), "model:", task), task.weights()));
  EXPECT_FALSE(torch::equal(task.validated.back(), task.weights()));
  EXPECT_TRUE(torch::equal(task.validated.back(), rounded(task.weights())));
  auto plain = setup("plain");
  plain.compress.quantise.validate = false;
  Remembering other;
  ASSERT_EQ(Trainer(other, plain).run(), ExitCode::kOk);
  EXPECT_TRUE(torch::equal(other.validated.back(), other.weights()));
  EXPECT_EQ(final_hash(plain), final_hash(run));
}

TEST_F(RoundedRuns, ValidationsRoundTheAverage) {
  auto run = setup("run");
  run.train.ema_decay = 0.9;
  Remembering task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const torch::Tensor average = values_of(tensors_of(run), "model:", task);
  EXPECT_TRUE(torch::equal(task.validated.back(), rounded(average)));
}

TEST_F(RoundedRuns, ARunThatIsCutInPartsHasTheSameBits) {
  for (const double noise : {1.0, 0.4}) {
    auto whole = setup("whole" + std::to_string(noise));
    auto parts = setup("parts" + std::to_string(noise));
    whole.compress.quantise.noise = parts.compress.quantise.noise = noise;
    Remembering undisturbed;
    ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);
    EXPECT_EQ(hash_of_run_in_parts(parts), final_hash(whole)) << noise;
  }
}

TEST_F(RoundedRuns, PrunedWeightsStayZero) {
  auto run = setup("run");
  run.compress.prune = {.sparsity = 0.5, .schedule = "once", .begin = 2};
  run.compress.quantise = {.bits = 4, .symmetric = false};
  Remembering task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  for (int64_t update = 2; update < 12; ++update) {
    EXPECT_GE(task.in_forward.at(update).slice(0, 0, 12).eq(0).sum().item<int64_t>(), 6) << update;
  }
  EXPECT_EQ(task.weights().slice(0, 0, 12).eq(0).sum().item<int64_t>(), 6);
}

}  // namespace
}  // namespace stretto::train
