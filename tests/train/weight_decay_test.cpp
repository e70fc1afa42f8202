// L2 under mixed precision: it belongs to the fp32 weights, and is added after unscaling.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "tests/train/bare_task.h"
#include "tests/train/pair_source.h"
#include "train/updater.h"

namespace stretto::train {
namespace {

constexpr int64_t kEntries = 30;

class Pairs : public stretto::test::BareTask {
 public:
  torch::nn::Module& model() override { return *model_; }
  const data::BatchSource& train_batches() override { return source_; }
  Sums loss(const Prepared& batch, const StepContext&) override {
    return sums(model_->loss(batch, {.training = true, .dropout_key = 1}).loss_sum, batch);
  }

 private:
  std::shared_ptr<models::Seq2SeqModel> model_ = stretto::test::small_transformer(1, kEntries);
  stretto::test::PairSource source_{
      {.batches = 4, .pairs = 4, .vocabulary = kEntries, .shortest = 5}};
};

struct Half {
  const char* name;
  kernels::Compute compute;
  double scale;  ///< of the loss; 1 = none
};

struct DecayedRun {
  Pairs task;
  optim::Arena arena{task.model()};
  Updater updater;

  DecayedRun(const Half& half, const optim::OptimOptions& options)
      : updater(task, arena, {}, setup(half, options)) {}

 private:
  static UpdaterSetup setup(const Half& half, const optim::OptimOptions& options) {
    UpdaterSetup setup;
    setup.train.update_freq = 2;
    setup.train.loss_scale.name = half.scale == 1 ? "none" : "static";
    setup.train.loss_scale.init = half.scale == 1 ? 0 : half.scale;
    setup.optim = options;
    setup.precision = {.compute = half.compute, .name = half.name, .why = ""};
    return setup;
  }
};

/// The gradient of the mean loss, as it stands in the arena before a step.
torch::Tensor unscaled(DecayedRun& run, const UpdateResult& result, double scale) {
  return run.arena.grads().to(torch::kDouble) / (result.totals.weights.front() * scale);
}

/// 1 where weights decay: in matrices.
torch::Tensor decaying(const optim::Arena& arena) {
  torch::Tensor mask = torch::zeros({arena.size()}, torch::kDouble);
  for (const auto& slot : arena.slots()) {
    if (slot.shape.size() >= 2) mask.narrow(0, slot.offset, slot.numel).fill_(1);
  }
  return mask;
}

TEST(WeightDecayInHalfPrecision, IsAddedToTheUnscaledGradientOfFp32Weights) {
  constexpr double kRate = 0.01, kDecay = 0.5;
  const Half fp32{"fp32", kernels::Compute::kFp32, 1};
  for (const Half& half : {Half{"mixed_fp16", kernels::Compute::kFp16, 256},
                           Half{"mixed_fp16", kernels::Compute::kFp16, 1},
                           Half{"mixed_bf16", kernels::Compute::kBf16, 1024},
                           Half{"mixed_bf16", kernels::Compute::kBf16, 1}}) {
    for (const std::string name : {"sgd", "adam"}) {
      SCOPED_TRACE(std::string(half.name) + ", scale " + std::to_string(half.scale) + ", " + name);
      const optim::OptimOptions options{.name = name, .weight_decay = kDecay, .momentum = 0};
      DecayedRun run(half, options), plain(fp32, options);
      const torch::Tensor mask = decaying(run.arena);
      torch::Tensor m = torch::zeros_like(mask), v = torch::zeros_like(mask);
      for (int step = 1; step <= 3; ++step) {
        const auto result = run.updater.gradients(step - 1, [] { return 0; });
        ASSERT_TRUE(result.finite);
        ASSERT_EQ(result.loss_scale, half.scale);
        const torch::Tensor before = run.arena.params().to(torch::kDouble);
        const torch::Tensor g = unscaled(run, result, half.scale);
        if (step == 1) {
          const auto same = plain.updater.gradients(0, [] { return 0; });
          EXPECT_FALSE(torch::equal(g, unscaled(plain, same, 1))) << "nothing was rounded";
        }
        run.updater.step(result, kRate, 1, step);
        const torch::Tensor d = g + kDecay * mask * before;
        torch::Tensor want = before - kRate * d;
        if (name == "adam") {
          m = 0.9 * m + 0.1 * d;
          v = 0.98 * v + 0.02 * d * d;
          const torch::Tensor root = (v / (1 - std::pow(0.98, step))).sqrt();
          want = before - kRate * m / (1 - std::pow(0.9, step)) / (root + 1e-8);
        }
        EXPECT_TRUE(torch::allclose(run.arena.params().to(torch::kDouble), want, 1e-5, 1e-6))
            << "step " << step;
        EXPECT_EQ(run.arena.params().scalar_type(), torch::kFloat);
      }
    }
  }
}

// In binary16 a weight near 1 has steps of 1e-3, and these are of 1e-6.
TEST(WeightDecayInHalfPrecision, IsNotLostWhereHalfPrecisionWouldRoundItAway) {
  const Half half{"mixed_fp16", kernels::Compute::kFp16, 256};
  DecayedRun run(half, {.name = "sgd", .weight_decay = 1e-4, .momentum = 0});
  const torch::Tensor mask = decaying(run.arena);
  const auto result = run.updater.gradients(0, [] { return 0; });
  run.arena.grads().zero_();
  const torch::Tensor before = run.arena.params().to(torch::kDouble);
  run.updater.step(result, 0.01, 1, 1);
  const torch::Tensor moved = before - run.arena.params().to(torch::kDouble);
  const torch::Tensor want = 1e-6 * mask * before;
  EXPECT_LE((moved - want).abs().max().item<double>(), 1.2e-7 * before.abs().max().item<double>());
  EXPECT_GT(moved.norm().item<double>(), 0.9 * want.norm().item<double>());
}

}  // namespace
}  // namespace stretto::train
