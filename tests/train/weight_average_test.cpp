// train.ema_decay and train.average_nonmono in the training loop: what validates and what is saved,
// and what goes on.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/train/toy_runs.h"
#include "train/trainer.h"

namespace stretto::train {
namespace {

using test::events, test::final_hash, test::Remembering, test::tensors_of, test::values_of;

class WeightAverageTest : public test::ToyRuns {
 protected:
  TrainerSetup setup(const std::string& name, double decay) const {
    auto setup = ToyRuns::setup(name);
    setup.train.ema_decay = decay;
    return setup;
  }
};

/// The average after each of the steps, in double; `skipped` is the number, from 0, of one that
/// was.
std::vector<torch::Tensor> averages(Remembering& task, int64_t steps, double decay,
                                    int64_t skipped = -1) {
  torch::Tensor average = task.in_forward.at(0).clone();
  std::vector<torch::Tensor> all;
  double made = 0;
  for (int64_t step = 1; step <= steps; ++step) {
    const torch::Tensor now = step < steps ? task.in_forward.at(step) : task.weights();
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
      EXPECT_FALSE(
          torch::equal(task.validated[i], task.in_forward[4 * static_cast<int64_t>(i) + 3]));
    }
  }
}

TEST_F(WeightAverageTest, ASkippedUpdateDoesNotMoveIt) {
  const auto run = setup("run", 0.999);
  Remembering task;
  task.nan_at = 5;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  ASSERT_TRUE(torch::equal(task.in_forward.at(5), task.in_forward.at(6)))
      << "the sixth step is skipped";
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

TEST_F(WeightAverageTest, ARunThatIsCutInPartsHasTheSameBits) {
  const auto whole = setup("whole", 0.99), parts = setup("parts", 0.99);
  Remembering undisturbed;
  ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);
  EXPECT_EQ(hash_of_run_in_parts(parts), final_hash(whole));
  const auto want = tensors_of(whole), got = tensors_of(parts);
  EXPECT_EQ(got.size(), 8U);  // model, trained, and two moments, of a matrix and a vector each
  EXPECT_TRUE(got == want);
}

TEST_F(WeightAverageTest, TheModelOfACheckpointIsWhatWasValidated) {
  const auto run = setup("run", 0.99);
  Remembering task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const auto tensors = tensors_of(run);
  EXPECT_TRUE(torch::equal(values_of(tensors, "model:", task), task.validated.back()));
  EXPECT_TRUE(torch::equal(values_of(tensors, "optimizer:trained/", task), task.weights()));
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
  expect_near(task.validated.front(), task.in_forward.at(0), "after updates of no size");
}

/// Its validations get worse at step 6, and then no better than they can be.
class Worsening : public Remembering {
 public:
  Validation validate() override {
    Remembering::validate();
    const int64_t step = in_forward.empty() ? begun_at : in_forward.rbegin()->first + 1;
    return test::toy_validation(losses.at(step));
  }
  int64_t begun_at = 0;  ///< the step that its process goes on from
  // At step 6 the best of all but the last is 3.
  std::map<int64_t, double> losses{{2, 3.0}, {4, 2.0}, {6, 3.5}, {8, 1.0}, {10, 4.0}, {12, 1.5}};
};

class MeanOfWeights : public test::ToyRuns {
 protected:
  TrainerSetup setup(const std::string& name, int64_t looks) const {
    auto setup = ToyRuns::setup(name);
    setup.eval.every = 2;
    setup.train.average_nonmono = looks;
    return setup;
  }

  /// The weights after this update, from 1.
  static torch::Tensor weights_after(Remembering& task, int64_t update) {
    return update < 12 ? task.in_forward.at(update) : task.weights();
  }
};

TEST_F(MeanOfWeights, ValidationsHaveTheMeanSinceTheOneThatWasWorse) {
  const auto run = setup("run", 1);
  Worsening task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  ASSERT_EQ(task.validated.size(), 6U);
  for (const size_t i : {0U, 1U, 2U}) {
    const int64_t step = 2 * static_cast<int64_t>(i) + 2;
    EXPECT_TRUE(torch::equal(task.validated[i], weights_after(task, step))) << step;
  }
  for (const size_t i : {3U, 4U, 5U}) {
    const int64_t step = 2 * static_cast<int64_t>(i) + 2;
    std::vector<torch::Tensor> since;
    for (int64_t update = 7; update <= step; ++update) {
      since.push_back(weights_after(task, update));
    }
    expect_near(task.validated[i], torch::stack(since).mean(0), "step " + std::to_string(step));
    EXPECT_FALSE(torch::equal(task.validated[i], weights_after(task, step))) << step;
  }
}

TEST_F(MeanOfWeights, TrainingGoesOnAsWithoutIt) {
  const auto plain = setup("plain", 0), averaged = setup("averaged", 1);
  Worsening first, second;
  ASSERT_EQ(Trainer(first, plain).run(), ExitCode::kOk);
  ASSERT_EQ(Trainer(second, averaged).run(), ExitCode::kOk);
  EXPECT_EQ(final_hash(plain), final_hash(averaged));
  EXPECT_FALSE(torch::equal(first.validated.back(), second.validated.back()));
}

TEST_F(MeanOfWeights, ARunThatIsCutInPartsHasTheSameBits) {
  const auto whole = setup("whole", 1);
  Worsening undisturbed;
  ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);
  const auto want = tensors_of(whole);
  // Cut before the mean begins, at the step at which it does, and behind it.
  for (const std::vector<int64_t>& cuts : {std::vector<int64_t>{3, 5, -1}, {6, -1}, {7, 9, -1}}) {
    const auto parts = setup("parts" + std::to_string(cuts.front()), 1);
    int64_t before = 0;
    for (const int64_t last : cuts) {
      Worsening task;
      task.begun_at = before;
      task.signal_at = before = last;
      EXPECT_EQ(Trainer(task, parts).run(), last < 0 ? ExitCode::kOk : ExitCode::kInterrupted);
    }
    EXPECT_EQ(final_hash(parts), final_hash(whole)) << cuts.front();
    EXPECT_TRUE(tensors_of(parts) == want) << cuts.front();
  }
}

TEST_F(MeanOfWeights, TheModelOfACheckpointIsWhatWasValidated) {
  const auto run = setup("run", 1);
  Worsening task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const auto tensors = tensors_of(run);
  EXPECT_TRUE(torch::equal(values_of(tensors, "model:", task), task.validated.back()));
  EXPECT_TRUE(torch::equal(values_of(tensors, "optimizer:trained/", task), task.weights()));
}

}  // namespace
}  // namespace stretto::train
