#include "train/frozen_parts.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "nn/batch_norm.h"
#include "optim/arena.h"
#include "store/checkpoint.h"
#include "tests/base/failure.h"
#include "tests/distributed/thread_group.h"
#include "tests/train/bare_task.h"
#include "tests/train/small_transformer_task.h"
#include "tests/train/toy_task.h"
#include "train/trainer.h"

namespace stretto::train {
namespace {

using test::final_hash;

models::Seq2SeqOptions small_parts(const std::string& tie_embeddings, const std::string& norm_layer,
                                   double decoder_layer_drop) {
  auto options = stretto::test::small_options(/*layers=*/2);
  auto decoder = stretto::test::small_stack(/*layers=*/1);
  decoder.layer_drop = decoder_layer_drop;
  options.decoder = decoder;
  options.norm_layer = norm_layer;
  options.tie_embeddings = tie_embeddings;
  return options;
}

class PartsTask : public test::SmallTransformerTask {
 public:
  explicit PartsTask(const std::string& tie_embeddings = "decoder",
                     const std::string& norm_layer = "layer_norm", double decoder_layer_drop = 0)
      : SmallTransformerTask(small_parts(tie_embeddings, norm_layer, decoder_layer_drop)) {}

  test::Weights copies() {
    test::Weights all = SmallTransformerTask::copies();
    for (const auto& item : model().named_buffers()) all[item.key()] = item.value().clone();
    return all;
  }
};

bool in_encoder(const std::string& name) {
  return name.starts_with("encoder.");
}

class FrozenPartsTest : public test::SmallTransformerRuns {
 protected:
  TrainerSetup setup(const std::string& name) const { return frozen_encoder(name); }
};

/// Nothing of the encoder has moved, and every other tensor has.
void expect_only_encoder_stays(const test::Weights& before, PartsTask& task) {
  const auto after = task.copies();
  int frozen = 0;
  for (const auto& [name, values] : before) {
    EXPECT_EQ(torch::equal(values, after.at(name)), in_encoder(name)) << name;
    frozen += in_encoder(name) ? 1 : 0;
  }
  EXPECT_GT(frozen, 10);
}

TEST_F(FrozenPartsTest, KeepTheirBitsWithEveryOptimizerWhileTheOthersMove) {
  for (const char* name : {"adam", "adamw", "radam", "lamb", "lars", "larc", "novograd", "sgd",
                           "adagrad", "rmsprop", "adafactor", "ftrl", "lazy_adam"}) {
    SCOPED_TRACE(name);
    auto run = setup(name);
    run.optim.name = name;
    run.optim.groups = {"encoder.* lr_scale=0.5", "decoder.* lr_scale=2"};
    PartsTask task;
    const auto before = task.copies();
    ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
    expect_only_encoder_stays(before, task);
    for (const auto& item : task.model().named_parameters()) {
      EXPECT_EQ(item.value().requires_grad(), !in_encoder(item.key())) << item.key();
      EXPECT_EQ(item.value().grad().defined(), !in_encoder(item.key())) << item.key();
    }
  }
}

// Then nothing between the encoder and the loss would have a gradient.
TEST_F(FrozenPartsTest, OfWhichAnUpdateLeavesOutEveryLayerStopNothing) {
  auto run = setup("left_out");
  run.train.freeze = {"decoder.*"};
  PartsTask task("decoder", "layer_norm", /*decoder_layer_drop=*/0.9);
  const auto before = task.copies();
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const auto after = task.copies();
  for (const auto& [name, values] : before) {
    EXPECT_EQ(torch::equal(values, after.at(name)), name.starts_with("decoder.")) << name;
  }
}

TEST_F(FrozenPartsTest, KeepTheirBitsWithLossScalingInHalfPrecision) {
  auto run = setup("half");
  run.precision = {.compute = kernels::Compute::kBf16, .name = "mixed_bf16", .why = ""};
  run.train.loss_scale = {.name = "backoff", .init = 64};
  PartsTask task;
  const auto before = task.copies();
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  expect_only_encoder_stays(before, task);
}

TEST_F(FrozenPartsTest, AreInCheckpointsWithoutStateAndSurviveAResume) {
  const auto whole = setup("whole"), parts = setup("parts");
  PartsTask undisturbed;
  const auto before = undisturbed.copies();
  ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);
  for (const int64_t steps : {3, 4, 6}) {
    PartsTask task;
    {
      // What is restored is the checkpoint's, not what the model was made with.
      const torch::NoGradGuard no_grad;
      if (steps > 3) task.model().named_parameters()["encoder.embedding.weight"].zero_();
    }
    auto part = parts;
    part.train.max_steps = steps;
    ASSERT_EQ(Trainer(task, part).run(), ExitCode::kOk);
    expect_only_encoder_stays(before, task);
  }
  EXPECT_EQ(final_hash(parts), final_hash(whole));

  const auto checkpoint =
      store::CheckpointStore::load(whole.run_directory / "checkpoints" / store::step_name(6));
  for (const auto& [name, values] : before) {
    EXPECT_NE(checkpoint.file("model").find(name), nullptr) << name;
  }
  EXPECT_EQ(checkpoint.file("model").tensors().size(), before.size());
  for (const auto& tensor : checkpoint.file("optimizer").tensors()) {
    EXPECT_EQ(tensor.name.find("encoder."), std::string::npos) << tensor.name;
  }
}

TEST_F(FrozenPartsTest, AreEqualOnAllRanksWhateverTheStrategy) {
  for (const char* strategy : {"all_reduce", "sharded", "parameter_server"}) {
    for (const bool overlap : {true, false}) {
      SCOPED_TRACE(strategy);
      std::vector<PartsTask> tasks(2);
      const auto before = tasks[0].copies();
      {
        // Rank 0 has the weights; the other receives them.
        const torch::NoGradGuard no_grad;
        tasks[1].model().named_parameters()["encoder.embedding.weight"].zero_();
      }
      stretto::test::run_ranks(2, [&](const distributed::ProcessGroup& group) {
        auto own = setup(std::string(strategy) + (overlap ? "_overlap" : "") + "_" +
                         std::to_string(group.rank()));
        own.handle_signals = false;
        own.dist.strategy = strategy;
        own.dist.overlap = overlap;
        own.dist.bucket_bytes = 4096;
        own.dist.check_every = 1;
        const auto rank = static_cast<size_t>(group.rank());
        EXPECT_EQ(Trainer(tasks[rank], own, group).run(), ExitCode::kOk);
      });
      const auto first = tasks[0].copies(), second = tasks[1].copies();
      for (const auto& [name, values] : first) {
        EXPECT_TRUE(torch::equal(values, second.at(name))) << name;
      }
      expect_only_encoder_stays(before, tasks[0]);
    }
  }
}

TEST_F(FrozenPartsTest, LeaveTheGradientOfTheOthersAloneAndOutOfItsNorm) {
  PartsTask all, part;
  freeze_parts(part, {"encoder.*"});
  optim::Arena all_arena(all.model()), arena(part.model());
  const data::Batch batch = part.train_batches().load(0, 0);
  for (PartsTask* task : {&all, &part})
    task->loss(task->prepare(batch), {1, 0}).losses.front().backward();
  const auto expected = all.model().named_parameters();
  double sum = 0;
  for (const auto& slot : arena.slots()) {
    const torch::Tensor gradient = optim::Arena::view(arena.grads(), slot);
    EXPECT_TRUE(torch::equal(gradient, expected[slot.name].grad())) << slot.name;
    sum += expected[slot.name].grad().to(torch::kDouble).square().sum().item<double>();
  }
  EXPECT_NEAR(kernels::sum_of_squares(arena.grads()), sum, 1e-6 * sum);
  EXPECT_LT(sum, 0.99 * kernels::sum_of_squares(all_arena.grads()));
  EXPECT_LT(arena.size(), all_arena.size());
}

TEST_F(FrozenPartsTest, AreCountedWithTiedTensorsAsOne) {
  PartsTask task("all");
  int64_t all = 0, encoder = 0;
  for (const auto& item : task.model().named_parameters()) {
    const bool frozen = in_encoder(item.key()) || item.key() == "embedding.weight";
    (frozen ? encoder : all) += item.value().numel();
  }
  const auto parts = freeze_parts(task, {"encoder.*"});
  EXPECT_EQ(parts.num_frozen, encoder);
  EXPECT_EQ(parts.num_trained, all);
  EXPECT_EQ(parts.tied,
            std::vector<std::string>{"`embedding.weight` as `encoder.embedding.weight`"});
  EXPECT_FALSE(task.model().named_parameters()["embedding.weight"].requires_grad());
  EXPECT_NE(parts.text().find(" tensors (train.freeze)"), std::string::npos) << parts.text();
  EXPECT_TRUE(optim::Arena(task.model()).buffers().front().is_parameter);

  PartsTask by_own_name("decoder");
  EXPECT_TRUE(freeze_parts(by_own_name, {"encoder.*"}).tied.empty());
  PartsTask output("decoder");
  EXPECT_EQ(freeze_parts(output, {"output.weight"}).tied,
            std::vector<std::string>{"`decoder.embedding.weight` as `output.weight`"});
  EXPECT_EQ(freeze_parts(output, {"output.weight"}).num_frozen_tensors, 1) << "once more";
}

TEST_F(FrozenPartsTest, MustBeThereAndLeaveSomethingToTrain) {
  PartsTask task;
  const auto refusal = [&](const std::vector<std::string>& patterns) {
    return testing::failure(ExitCode::kUsage, [&] { freeze_parts(task, patterns); }).message();
  };
  EXPECT_NE(refusal({"encodr.*"}).find("train.freeze: `encodr.*` matches no parameter"),
            std::string::npos);
  EXPECT_NE(refusal({"encoder.*", "decoder.*"}).find("there is nothing to train"),
            std::string::npos);
  for (const auto& parameter : task.model().parameters()) EXPECT_TRUE(parameter.requires_grad());
  EXPECT_EQ(freeze_parts(task, {}).num_frozen_tensors, 0);
}

TEST_F(FrozenPartsTest, KeepTheRunningStatisticsOfTheirBatchNorms) {
  auto run = setup("norms");
  PartsTask task("decoder", "batch_norm");
  {
    const torch::NoGradGuard no_grad;
    for (auto* norm : nn::batch_norms(task.model())) {
      norm->running_mean.fill_(0.25);
      norm->running_var.fill_(2);
    }
  }
  const auto before = task.copies();
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  expect_only_encoder_stays(before, task);
  int frozen = 0;
  for (const auto* norm : nn::batch_norms(task.model())) frozen += norm->is_frozen() ? 1 : 0;
  EXPECT_GT(frozen, 0);
  EXPECT_LT(frozen, static_cast<int>(nn::batch_norms(task.model()).size()));
}

TEST_F(FrozenPartsTest, ABatchNormWithOneFrozenTensorGoesOn) {
  PartsTask task("decoder", "batch_norm");
  const auto parts = freeze_parts(task, {"encoder.*norm.weight"});
  EXPECT_GT(parts.num_frozen_tensors, 0);
  EXPECT_EQ(parts.num_batch_norms, 0);
}

}  // namespace
}  // namespace stretto::train
