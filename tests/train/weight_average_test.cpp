// train.ema_decay in the training loop: what validates and what is saved, and what goes on.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "store/checkpoint.h"
#include "tests/train/toy_task.h"
#include "train/trainer.h"

namespace stretto::train {
namespace {

namespace fs = std::filesystem;
using test::events, test::final_hash;

/// Remembers the weights before each attempt, and those of each validation.
class Remembering : public test::ToyTask {
 public:
  Sums loss(const data::Batch& batch, const StepContext& context) override {
    before[context.update] = weights();
    return ToyTask::loss(batch, context);
  }
  Validation validate() override {
    validated.push_back(weights());
    return ToyTask::validate();
  }
  torch::Tensor weights() {
    std::vector<torch::Tensor> all;
    for (const auto& parameter : model().parameters()) all.push_back(parameter.detach().flatten());
    return torch::cat(all).to(torch::kDouble);
  }

  std::map<int64_t, torch::Tensor> before;
  std::vector<torch::Tensor> validated;
};

class WeightAverageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() /
            ("stretto_ema_" + std::to_string(::getpid()) + "_" +
             ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  /// Twelve updates, validated after every fourth step and saved there.
  TrainerSetup setup(const std::string& name, double decay) {
    auto setup = test::toy_setup(root_ / name);
    setup.eval.every = 4;
    setup.train.ema_decay = decay;
    return setup;
  }

  fs::path root_;
};

/// The average after each of the steps, in double; `skipped` is the number, from 0, of one that
/// was.
std::vector<torch::Tensor> averages(Remembering& task, int64_t steps, double decay,
                                    int64_t skipped = -1) {
  torch::Tensor average = task.before.at(0).clone();
  std::vector<torch::Tensor> all;
  double made = 0;
  for (int64_t step = 1; step <= steps; ++step) {
    const torch::Tensor now = step < steps ? task.before.at(step) : task.weights();
    if (step - 1 != skipped) {
      made += 1;
      const double kept = std::min(decay, (1 + made) / (10 + made));
      average = kept * average + (1 - kept) * now;
    }
    all.push_back(average);
  }
  return all;
}

void expect_near(const torch::Tensor& got, const torch::Tensor& want, const std::string& where) {
  EXPECT_LE((got - want).abs().max().item<double>(), 1e-6) << where;
}

TEST_F(WeightAverageTest, ValidationsHaveTheAverageOfAPlainFormula) {
  for (const double decay : {0.3, 0.999}) {
    const auto run = setup("decay" + std::to_string(decay), decay);
    Remembering task;
    ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
    const auto expected = averages(task, 12, decay);
    ASSERT_EQ(task.validated.size(), 3U);
    for (size_t i = 0; i < 3; ++i) {
      expect_near(task.validated[i], expected[4 * i + 3], "validation " + std::to_string(i));
      EXPECT_FALSE(torch::equal(task.validated[i], task.before[4 * static_cast<int64_t>(i) + 3]));
    }
  }
}

TEST_F(WeightAverageTest, ASkippedUpdateDoesNotMoveIt) {
  const auto run = setup("run", 0.999);
  Remembering task;
  task.nan_at = 5;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  ASSERT_TRUE(torch::equal(task.before.at(5), task.before.at(6))) << "the sixth step is skipped";
  const auto expected = averages(task, 13, 0.999, /*skipped=*/5);
  ASSERT_EQ(task.validated.size(), 4U);
  for (const auto& [validation, step] :
       {std::pair<size_t, size_t>{0, 4}, {1, 8}, {2, 12}, {3, 13}}) {
    expect_near(task.validated[validation], expected[step - 1], "step " + std::to_string(step));
  }
}

TEST_F(WeightAverageTest, TrainingGoesOnAsWithoutIt) {
  const auto plain = setup("plain", 0), averaged = setup("averaged", 0.99);
  Remembering first, second;
  ASSERT_EQ(Trainer(first, plain).run(), ExitCode::kOk);
  ASSERT_EQ(Trainer(second, averaged).run(), ExitCode::kOk);
  EXPECT_EQ(final_hash(plain), final_hash(averaged));
  const auto want = events(plain, "train"), got = events(averaged, "train");
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].loss, want[i].loss) << i;
}

/// Every tensor of the checkpoint of step 12: "model:weight" -> bytes.
std::map<std::string, std::string> tensors_of(const TrainerSetup& run) {
  const auto path = store::CheckpointStore(run.run_directory).path_of(12);
  const auto loaded = store::CheckpointStore::load(path);
  std::map<std::string, std::string> all;
  for (const auto& [stem, file] : loaded.files) {
    for (const auto& tensor : file.tensors()) {
      all[stem + ":" + tensor.name] = std::string(tensor.bytes.data(), tensor.bytes.size());
    }
  }
  return all;
}

TEST_F(WeightAverageTest, ARunThatIsCutInPiecesHasTheSameBits) {
  const auto whole = setup("whole", 0.99), pieces = setup("pieces", 0.99);
  Remembering undisturbed;
  ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);
  for (const int64_t last : {3, 7, -1}) {
    Remembering task;
    task.signal_at = last;
    ASSERT_EQ(Trainer(task, pieces).run(), last < 0 ? ExitCode::kOk : ExitCode::kInterrupted);
  }
  EXPECT_EQ(final_hash(pieces), final_hash(whole));
  const auto want = tensors_of(whole), got = tensors_of(pieces);
  EXPECT_EQ(got.size(), 8U);  // model, trained, and two moments, of a matrix and a vector each
  EXPECT_TRUE(got == want);
}

TEST_F(WeightAverageTest, TheModelOfACheckpointIsWhatWasValidated) {
  const auto run = setup("run", 0.99);
  Remembering task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const auto tensors = tensors_of(run);
  const auto values = [&](const std::string& prefix) {
    std::vector<torch::Tensor> all;
    for (const auto& item : task.model().named_parameters()) {
      std::string bytes = tensors.at(prefix + item.key());
      all.push_back(torch::from_blob(bytes.data(), {item.value().numel()}).clone());
    }
    return torch::cat(all).to(torch::kDouble);
  };
  EXPECT_TRUE(torch::equal(values("model:"), task.validated.back()));
  EXPECT_TRUE(torch::equal(values("optimizer:trained/"), task.weights()));
}

TEST_F(WeightAverageTest, ItBeginsWithTheWeightsOfAnotherRun) {
  auto other = setup("other", 0);
  Remembering first;
  ASSERT_EQ(Trainer(first, other).run(), ExitCode::kOk);
  auto run = setup("run", 0.9);
  run.train.init_from = (root_ / "other").string();
  run.train.ema_warmup = false;
  run.train.max_steps = 4;
  run.optim.lr = 1e-12;  // so that weights and average stay
  Remembering task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  expect_near(task.validated.front(), task.before.at(0), "after updates of no size");
}

}  // namespace
}  // namespace stretto::train
