#include "tests/add_a_task/label_family.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "experiment/rules.h"
#include "runs/provenance.h"
#include "runs/run_folder.h"
#include "tests/add_a_task/label_display.h"
#include "tests/add_a_task/label_rules.h"
#include "tests/add_a_task/label_task.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/train/toy_task.h"

namespace stretto::tasks {
namespace {

using stretto::testing::failure;
using train::test::events;

/// Lines of vowels and lines of consonants, in turn.
class LabelFamilyTest : public ::testing::Test {
 protected:
  LabelFamilyTest() {
    auto& options = experiment_.options;
    translation_of(options).model.d_model = 8;
    translation_of(options).data.max_samples = 16;
    translation_of(options).data.train_src = {folder_.write("train.txt", text(64))};
    translation_of(options).data.train_tgt = {folder_.write("train.label", labels(64))};
    translation_of(options).data.valid_src = {folder_.write("valid.txt", text(10))};
    translation_of(options).data.valid_tgt = {folder_.write("valid.label", labels(10))};
  }

  static std::string text(int64_t count) {
    std::string lines;
    for (int64_t i = 0; i < count; ++i) {
      const std::string letters = i % 2 == 0 ? "aeiou" : "bcdfg";
      for (int64_t k = 0; k < 1 + i % 7; ++k) lines += letters[static_cast<size_t>((i + k) % 5)];
      lines += "\n";
    }
    return lines;
  }
  static std::string labels(int64_t count) {
    std::string lines;
    for (int64_t i = 0; i < count; ++i) lines += i % 2 == 0 ? "vowels\n" : "consonants\n";
    return lines;
  }

  std::unique_ptr<FamilyTask> make_task() const {
    return family_.make_task(experiment_.options, family_.first_assets(experiment_), {});
  }

  /// What `stretto train` does with a family, for so many updates.
  train::TrainerSetup train(int64_t updates) const {
    auto run = runs::RunFolder::open_for_training(folder_ / "run");
    run.write_config("# of the toy", "hash");
    run.write_assets(family_.first_assets(experiment_));
    const auto task = family_.make_task(experiment_.options, run.read_assets(), {});
    task->require_known_data(/*warn=*/true);
    auto setup = train::test::toy_setup(run.directory());
    setup.train.max_steps = updates;
    setup.eval = {.every = 20, .best_metric = "accuracy"};
    setup.identity = {.run_id = run.run_id(),
                      .config_hash = "hash",
                      .tokenizer = runs::tokenizer_hashes(task->assets())};
    setup.description.display = label_display();
    EXPECT_EQ(train::Trainer(*task, setup).run(), ExitCode::kOk);
    return setup;
  }

  const Family& family_ = label_family();
  testing::TempDir folder_;
  experiment::LoadedExperiment experiment_;
};

// Data.

TEST_F(LabelFamilyTest, LabelsAreAFileOfTheRun) {
  const Assets assets = family_.first_assets(experiment_);
  EXPECT_EQ(assets, (Assets{{"labels.txt", "consonants\nvowels\n"}}));
  EXPECT_EQ(labels_of(assets), (Labels{"consonants", "vowels"}));
}

TEST_F(LabelFamilyTest, TheNetworkOfARunHasARowForEachLabel) {
  const auto network = family_.make_network(experiment_.options, assets_of({"a", "b", "c"}),
                                            /*draws_weights=*/false);
  const at::Tensor output = network->named_parameters()["output.weight"];
  EXPECT_EQ(output.sizes(), at::IntArrayRef({3, 8}));
  EXPECT_TRUE(output.is_meta());
}

TEST_F(LabelFamilyTest, LinesOutOfStepAndUnknownLabelsAreNamed) {
  auto& data = translation_of(experiment_.options).data;
  data.valid_tgt = {folder_.write("other.label", "vowels\nconsonants\nvowles\n")};
  const Error unknown = failure(ExitCode::kBadData, [&] { make_task(); });
  EXPECT_NE(std::string(unknown.what()).find("other.label:3: "), std::string::npos);
  EXPECT_NE(std::string(unknown.what()).find("`vowles`"), std::string::npos);
  data.valid_tgt = {folder_.write("other.label", labels(9))};
  const Error too_few = failure(ExitCode::kBadData, [&] { make_task(); });
  EXPECT_NE(std::string(too_few.what()).find("valid.txt:10: "), std::string::npos);
  data.valid_tgt = {folder_.write("other.label", labels(11))};
  const Error too_many = failure(ExitCode::kBadData, [&] { make_task(); });
  EXPECT_NE(std::string(too_many.what()).find("other.label:11: "), std::string::npos);
}

TEST_F(LabelFamilyTest, TextWithoutALineIsRefused) {
  auto& data = translation_of(experiment_.options).data;
  data.train_src = data.train_tgt = {folder_.write("empty", "")};
  data.valid_src = data.valid_tgt = {};
  const auto task = make_task();
  EXPECT_FALSE(task->can_validate());
  const Error error = failure(ExitCode::kBadData, [&] { task->require_known_data(true); });
  EXPECT_NE(std::string(error.what()).find("data.train_src"), std::string::npos);
}

TEST_F(LabelFamilyTest, AnEpochHasEachLineOnce) {
  const auto task = make_task();
  const auto& source = task->train_batches();
  ASSERT_EQ(source.num_batches(), 4);
  std::vector<int64_t> seen;
  for (int64_t i = 0; i < 4; ++i) {
    const auto ids = source.sample_ids(/*epoch=*/3, i);
    seen.insert(seen.end(), ids.begin(), ids.end());
  }
  EXPECT_FALSE(std::is_sorted(seen.begin(), seen.end()));
  std::sort(seen.begin(), seen.end());
  for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(seen.at(static_cast<size_t>(i)), i);
}

TEST_F(LabelFamilyTest, ALineIsShownWithItsLabel) {
  const auto task = make_task();
  const auto batch = task->train_batches().load(0, 0);
  const int64_t line = batch.sample_ids.at(5);
  const std::vector<std::pair<std::string, std::string>> expected{
      {"text", split(text(64), '\n').at(static_cast<size_t>(line))},
      {"label", split(labels(64), '\n').at(static_cast<size_t>(line))}};
  EXPECT_EQ(task->show(batch, 5), expected);
}

TEST_F(LabelFamilyTest, ProcessesWithOtherTextDisagree) {
  const auto mine = make_task()->data_facts();
  translation_of(experiment_.options).data.valid_tgt = {
      folder_.write("other.label", std::string("vowels\n") + labels(10).substr(7))};
  EXPECT_EQ(make_task()->data_facts().at(1).value, mine.at(1).value);
  translation_of(experiment_.options).data.valid_tgt = {
      folder_.write("other.label", std::string("consonants\n") + labels(10).substr(7))};
  EXPECT_EQ(make_task()->data_facts().at(0).value, mine.at(0).value);
  EXPECT_NE(make_task()->data_facts().at(1).value, mine.at(1).value);
}

// Batches of lines that are about equally long.
TEST_F(LabelFamilyTest, ABatchIsBoundedByLinesAndByBytes) {
  translation_of(experiment_.options).data.max_tokens = 20;
  const auto task = make_task();
  const auto& source = task->train_batches();
  EXPECT_GT(source.num_batches(), 4);
  for (int64_t i = 0; i < source.num_batches(); ++i) {
    const auto batch = source.load(1, i);
    EXPECT_LE(batch.num_sequences(), 16);
    EXPECT_LE(batch.column<int64_t>(kText).num_rows(), 20);
  }
}

// Rules.

TEST_F(LabelFamilyTest, CheckAsksForTextAndLabelsAlone) {
  auto& options = experiment_.options;
  options.train.max_steps = 20000;
  translation_of(options).tokenizer.type = "vocab";  // which no label needs
  options.eval.best_metric = "accuracy";
  const auto problems = [&] {
    std::vector<config::Problem> found;
    experiment::check_rules(options, {}, &label_rules(), found);
    std::vector<std::string> lines;
    for (const auto& problem : found) lines.push_back(problem.key + ": " + problem.what);
    return lines;
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(problems(), Lines{});
  options.eval.best_metric = "bleu";
  EXPECT_EQ(problems(), Lines{"eval.best_metric: must be one of accuracy, loss, got \"bleu\""});
  options.eval.best_metric = "loss";
  translation_of(options).data.train_tgt.clear();
  EXPECT_EQ(problems(), Lines{"data.train_tgt: each file of text needs one of labels"});
  translation_of(options).data.train_src.clear();
  EXPECT_EQ(problems(), Lines{"data.train_src: there is no text to learn from"});
}

TEST_F(LabelFamilyTest, ScoresGoTheWayThatTheyAreShown) {
  const auto scores = make_task()->validate().scores;
  for (const auto& name : label_rules().scores(experiment_.options)) {
    const auto* score = train::find_score(scores, name.name);
    ASSERT_NE(score, nullptr) << name.name;
    EXPECT_EQ(score->higher_is_better, name.higher_is_better) << name.name;
    EXPECT_EQ(label_display().style(name.name).higher_is_better, name.higher_is_better);
  }
}

// The loss.

/// Line after line.
at::Tensor slow_loss(const torch::nn::Module& model, const data::Batch& batch) {
  const auto parameters = model.named_parameters();
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    std::vector<at::Tensor> vectors;
    for (const int64_t byte : batch.column<int64_t>(kText).sequence(i)) {
      vectors.push_back(parameters["bytes.weight"][byte] * std::sqrt(8.0));
    }
    const at::Tensor logits =
        parameters["output.weight"].mv(at::stack(vectors).mean(0)) + parameters["output.bias"];
    sum = sum - logits.log_softmax(0)[batch.column<int64_t>(kLabel).sequence(i).front()];
  }
  return sum;
}

TEST_F(LabelFamilyTest, LossAndGradientsAreThoseOfEachLineByItself) {
  const auto task = make_task();
  task->model().to(at::kDouble);
  const auto batch = task->train_batches().load(0, 0);
  const auto gradients = [&](const at::Tensor& loss) {
    return torch::autograd::grad({loss}, task->model().parameters());
  };
  const at::Tensor loss = task->loss(batch, {}).losses.at(0);
  const at::Tensor slow = slow_loss(task->model(), batch);
  EXPECT_NEAR(loss.item<double>(), slow.item<double>(), 1e-12 * slow.item<double>());
  const auto found = gradients(loss), wanted = gradients(slow);
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(at::allclose(found[i], wanted[i], 1e-10, 1e-12)) << i;
  }
}

/// Processes share a micro-batch, and a batch without memory is cut in halves.
TEST_F(LabelFamilyTest, PartsOfABatchAddUpToIt) {
  const auto task = make_task();
  task->model().to(at::kDouble);
  const auto whole = task->train_batches().load(0, 0);
  const auto expected = task->loss(whole, {});
  double loss = 0, right = 0, weight = 0;
  int64_t lines = 0;
  for (int64_t i = 0; i < 3; ++i) {
    const auto part = data::even_part(whole, i, 3);
    const auto sums = task->loss(part, {});
    loss += sums.losses.at(0).item<double>();
    right += sums.statistics.at(0).item<double>();
    weight += task->weights(part).at(0);
    lines += sums.counts.at(0);
  }
  EXPECT_NEAR(loss, expected.losses.at(0).item<double>(), 1e-12 * loss);
  EXPECT_EQ(right, expected.statistics.at(0).item<double>());
  EXPECT_EQ(weight, task->weights(whole).at(0));
  EXPECT_EQ(lines, expected.counts.at(0));
}

// Commands.

TEST_F(LabelFamilyTest, ARunLearnsUnderItsOwnNumbers) {
  const auto setup = train(60);
  const auto steps = events(setup, "train"), valid = events(setup, "valid");
  ASSERT_EQ(steps.size(), 60U);
  EXPECT_EQ(steps.front().number("lines"), 16);
  EXPECT_GT(steps.front().number("lines_per_second"), 0);
  EXPECT_LT(steps.back().loss.value(), steps.front().loss.value());
  ASSERT_EQ(valid.size(), 3U);
  EXPECT_EQ(valid.back().number("accuracy"), 1);
}

TEST_F(LabelFamilyTest, AFinishedRunIsEvaluatedAndLabelsLines) {
  train(60);
  const std::string run = (folder_ / "run").string();
  ::testing::internal::CaptureStdout();
  const int evaluated =
      family_.eval({.experiment = experiment_, .run_directory = run, .checkpoint = "last"}, {});
  const std::string score = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(evaluated, 0);
  EXPECT_NE(score.find("accuracy 1.0000"), std::string::npos) << score;

  const std::string input = folder_.write("input.txt", "uoie\n\xff\x01\ndcbf\n");
  ASSERT_NE(std::freopen(input.c_str(), "r", stdin), nullptr);
  ::testing::internal::CaptureStdout();
  const int labelled =
      family_.infer({.experiment = experiment_, .run_directory = run, .json = true}, {});
  const std::string answers = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(labelled, 0);
  EXPECT_EQ(answers, "{\"label\":\"vowels\"}\n{\"label\":\"\"}\n{\"label\":\"consonants\"}\n");
}

}  // namespace
}  // namespace stretto::tasks
