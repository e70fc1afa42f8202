// train.unfreeze: tensors that stay for some updates, and then train as if training began.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "store/checkpoint.h"
#include "tests/base/failure.h"
#include "tests/distributed/thread_group.h"
#include "tests/train/bare_task.h"
#include "tests/train/small_transformer_task.h"
#include "tests/train/toy_task.h"
#include "train/frozen_parts.h"
#include "train/trainer.h"

namespace stretto::train {
namespace {

using test::final_hash;
using test::Weights;

models::Seq2SeqOptions two_layers(nn::LoraOptions lora, nn::AdapterOptions adapter) {
  auto options = stretto::test::small_options(/*layers=*/2);
  options.tie_embeddings = "decoder";
  options.lora = std::move(lora);
  options.adapter = std::move(adapter);
  return options;
}

class StackTask : public test::SmallTransformerTask {
 public:
  explicit StackTask(nn::LoraOptions lora = {}, nn::AdapterOptions adapter = {})
      : SmallTransformerTask(two_layers(std::move(lora), std::move(adapter))) {}
};

class UnfreezeTest : public test::SmallTransformerRuns {
 protected:
  /// The encoder's layers begin one after the other, from above, its embedding never.
  TrainerSetup setup(const std::string& name) const {
    auto setup = frozen_encoder(name);
    setup.train.save_every = 100;
    setup.train.unfreeze = {"encoder.layers.1.* 2", "encoder.layers.0.* 4"};
    return setup;
  }
};

/// What has moved of each part between two sets of weights: "all", "none" or "some" of its tensors.
std::string moved(const Weights& before, const Weights& after, const std::string& part) {
  int all = 0, changed = 0;
  for (const auto& [name, values] : before) {
    if (!name.starts_with(part)) continue;
    ++all;
    changed += torch::equal(values, after.at(name)) ? 0 : 1;
  }
  return changed == 0 ? "none" : changed == all ? "all" : "some";
}

/// But for the order of sums.
void expect_near(const Weights& got, const Weights& want) {
  for (const auto& [name, values] : want) {
    EXPECT_TRUE(torch::allclose(got.at(name), values, 1e-3, 1e-3)) << name;
  }
}

TEST_F(UnfreezeTest, EachPartBeginsAtItsUpdate) {
  struct Row {
    int64_t updates;
    std::string decoder, layer1, layer0, embedding;  // that moved in the last of them
  };
  const std::vector<Row> rows{
      {1, "none", "none", "none", "none"},  // warm-up: its rate is zero
      {2, "all", "none", "none", "none"},  {3, "all", "all", "none", "none"},
      {4, "all", "all", "none", "none"},   {5, "all", "all", "all", "none"},
      {6, "all", "all", "all", "none"},
  };
  StackTask task;
  Weights before = task.copies();
  for (const Row& row : rows) {
    auto part = setup("table");
    part.train.max_steps = row.updates;
    ASSERT_EQ(Trainer(task, part).run(), ExitCode::kOk);
    const Weights after = task.copies();
    EXPECT_EQ(moved(before, after, "decoder."), row.decoder) << row.updates;
    EXPECT_EQ(moved(before, after, "encoder.layers.1."), row.layer1) << row.updates;
    EXPECT_EQ(moved(before, after, "encoder.layers.0."), row.layer0) << row.updates;
    EXPECT_EQ(moved(before, after, "encoder.embedding"), row.embedding) << row.updates;
    before = after;
    const auto checkpoint = store::CheckpointStore::load(part.run_directory / "checkpoints" /
                                                         store::step_name(row.updates));
    for (const auto& state : checkpoint.file("optimizer").tensors()) {
      EXPECT_EQ(state.name.find("encoder.embedding"), std::string::npos) << state.name;
      const auto zeros =
          std::all_of(state.bytes.begin(), state.bytes.end(), [](char byte) { return byte == 0; });
      const bool layer0 = state.name.find("encoder.layers.0.") != std::string::npos;
      if (!layer0) continue;
      EXPECT_EQ(zeros, row.updates <= 4) << state.name << " after " << row.updates;
    }
  }
  StackTask undisturbed;
  const auto whole = setup("whole");
  ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);
  EXPECT_EQ(final_hash(setup("table")), final_hash(whole)) << "a resume at every update";
}

// A run that stops between two saves goes on from an earlier update.
TEST_F(UnfreezeTest, ARunThatIsCutOffGoesOnFromItsCheckpoint) {
  StackTask undisturbed, cut;
  const auto whole = setup("whole");
  ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);
  auto run = setup("cut");
  run.train.save_every = 3;
  cut.broken_at = 4;  // with the lower layer trained for no update, and the upper one for two
  EXPECT_THROW(Trainer(cut, run).run(), std::runtime_error);
  cut.broken_at = -1;
  ASSERT_EQ(Trainer(cut, run).run(), ExitCode::kOk);
  EXPECT_EQ(final_hash(run), final_hash(whole));
}

TEST_F(UnfreezeTest, AllRanksAgreeWhateverTheStrategy) {
  Weights expected;
  for (const char* strategy : {"all_reduce", "sharded", "parameter_server"}) {
    for (const bool overlap : {true, false}) {
      SCOPED_TRACE(strategy);
      std::vector<StackTask> tasks(2);
      const Weights before = tasks[0].copies();
      const std::string name = std::string(strategy) + (overlap ? "_overlap" : "");
      stretto::test::run_ranks(2, [&](const distributed::ProcessGroup& group) {
        auto own = setup(name + "_" + std::to_string(group.rank()));
        own.handle_signals = false;
        own.optim.name = "sgd";  // Adam makes steps of what rounding leaves of a key's bias
        own.dist.strategy = strategy;
        own.dist.overlap = overlap;
        own.dist.bucket_bytes = 4096;
        own.dist.check_every = 1;
        const auto rank = static_cast<size_t>(group.rank());
        EXPECT_EQ(Trainer(tasks[rank], own, group).run(), ExitCode::kOk);
      });
      const auto first = tasks[0].copies(), second = tasks[1].copies();
      for (const auto& [tensor, values] : first) {
        EXPECT_TRUE(torch::equal(values, second.at(tensor))) << tensor;
      }
      EXPECT_EQ(moved(before, first, "encoder.layers.0."), "all");
      EXPECT_EQ(moved(before, first, "encoder.embedding"), "none");
      if (expected.empty()) expected = first;
      expect_near(first, expected);
    }
  }
}

TEST_F(UnfreezeTest, WorksForATableThatIsEmbeddingAndOutput) {
  Weights expected;
  for (const bool overlap : {true, false}) {
    std::vector<StackTask> tasks(2);
    stretto::test::run_ranks(2, [&](const distributed::ProcessGroup& group) {
      auto own = setup("table_" + std::to_string(overlap) + std::to_string(group.rank()));
      own.handle_signals = false;
      own.optim.name = "sgd";
      own.train.freeze = {};
      own.train.unfreeze = {"decoder.embedding.* 3"};
      own.dist.overlap = overlap;
      own.dist.bucket_bytes = 4096;
      own.dist.check_every = 1;
      const auto rank = static_cast<size_t>(group.rank());
      EXPECT_EQ(Trainer(tasks[rank], own, group).run(), ExitCode::kOk);
    });
    if (expected.empty()) expected = tasks[0].copies();
    expect_near(tasks[0].copies(), expected);
  }
}

TEST_F(UnfreezeTest, SaysWhatTrainsWhen) {
  StackTask task;
  const auto parts =
      freeze_parts(task, {"encoder.*"}, {"encoder.layers.1.* 200", "encoder.layers.0.*.bias 1000"});
  EXPECT_EQ(parts.late.front().begins, 1000) << "in the order of registration";
  EXPECT_NE(parts.late_text().find(" tensors after 200 updates, "), std::string::npos)
      << parts.late_text();
  EXPECT_NE(parts.late_text().find(" tensors after 1,000 updates"), std::string::npos)
      << parts.late_text();
  const auto refusal = [&](const std::vector<std::string>& freeze,
                           const std::vector<std::string>& unfreeze) {
    return stretto::testing::failure(ExitCode::kUsage,
                                     [&] { freeze_parts(task, freeze, unfreeze); })
        .message();
  };
  EXPECT_NE(refusal({}, {"encodr.* 5"}).find("train.unfreeze: `encodr.*` matches no parameter"),
            std::string::npos);
  EXPECT_NE(refusal({}, {"encoder.*"}).find("train.unfreeze"), std::string::npos);
  EXPECT_NE(refusal({"decoder.*"}, {"encoder.* 5"}).find("nothing to train"), std::string::npos);
}

// --- LoRA --------------------------------------------------------------------------------------

TEST_F(UnfreezeTest, OfAModelWithLoraOnlyItsMatricesTrain) {
  const nn::LoraOptions lora{.rank = 2, .dropout = 0.1};
  auto run = setup("lora");
  run.train.freeze = run.train.unfreeze = {};
  StackTask task(lora);
  const Weights before = task.copies();
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const Weights after = task.copies();
  for (const auto& [name, values] : before) {
    const bool trains = name.ends_with(".lora_a") || name.ends_with(".lora_b");
    EXPECT_EQ(torch::equal(values, after.at(name)), !trains) << name;
  }
  const auto checkpoint =
      store::CheckpointStore::load(run.run_directory / "checkpoints" / store::step_name(6));
  for (const auto& [name, values] : before) {
    EXPECT_NE(checkpoint.file("model").find(name), nullptr) << name;
  }
  StackTask again(lora);
  const auto parts = freeze_parts(again, {});
  EXPECT_NE(parts.text().find("(model.lora)"), std::string::npos);
  EXPECT_GT(parts.num_frozen, 5 * parts.num_trained);
}

TEST_F(UnfreezeTest, LoraTrainsWhatItsPatternsNameAndResumes) {
  const nn::LoraOptions lora{.rank = 2, .dropout = 0.1, .train = {"*norm*"}};
  auto whole = setup("lora_whole"), parts = setup("lora_parts");
  whole.train.freeze = parts.train.freeze = {"decoder.*"};
  StackTask undisturbed(lora);
  const Weights before = undisturbed.copies();
  ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);
  const Weights after = undisturbed.copies();
  EXPECT_EQ(moved(before, after, "decoder."), "none");
  EXPECT_EQ(moved(before, after, "encoder.final_norm."), "all");
  EXPECT_EQ(moved(before, after, "encoder.layers.0."), "all") << "train.unfreeze";
  EXPECT_EQ(moved(before, after, "encoder.embedding"), "none");
  for (const int64_t updates : {1, 3, 5, 6}) {
    StackTask task(lora);
    auto part = parts;
    part.train.max_steps = updates;
    ASSERT_EQ(Trainer(task, part).run(), ExitCode::kOk);
  }
  EXPECT_EQ(final_hash(parts), final_hash(whole));
}

// --- Adapters ----------------------------------------------------------------------------------

TEST_F(UnfreezeTest, OfAModelWithAdaptersOnlyTheyTrainAndWhatTheirPatternsName) {
  const nn::AdapterOptions adapter{.dim = 2, .train = {"encoder.*norm*"}};
  auto run = setup("adapter");
  run.train.freeze = run.train.unfreeze = {};
  StackTask task({}, adapter);
  const Weights before = task.copies();
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const Weights after = task.copies();
  for (const auto& [name, values] : before) {
    const bool norm = name.starts_with("encoder.") && name.find("norm") != std::string::npos;
    EXPECT_EQ(torch::equal(values, after.at(name)), !norm && !nn::is_adapter(name)) << name;
  }
  StackTask again({}, adapter), both({.rank = 2}, adapter);
  EXPECT_NE(freeze_parts(again, {}).text().find("(model.adapter)"), std::string::npos);
  EXPECT_NE(freeze_parts(both, {}).text().find("(model.lora, model.adapter)"), std::string::npos);
}

TEST_F(UnfreezeTest, AdaptersResumeBesideLora) {
  const nn::LoraOptions lora{.rank = 2, .dropout = 0.1};
  const nn::AdapterOptions adapter{.dim = 2, .parts = {"*ffn*"}};
  auto whole = setup("adapter_whole"), parts = setup("adapter_parts");
  StackTask undisturbed(lora, adapter);
  ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);
  for (const int64_t updates : {1, 3, 5, 6}) {
    StackTask task(lora, adapter);
    auto part = parts;
    part.train.max_steps = updates;
    ASSERT_EQ(Trainer(task, part).run(), ExitCode::kOk);
  }
  EXPECT_EQ(final_hash(parts), final_hash(whole));
}

}  // namespace
}  // namespace stretto::train
