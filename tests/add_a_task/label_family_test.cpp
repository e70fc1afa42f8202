#include "tests/add_a_task/label_family.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/family_options.h"
#include "runs/provenance.h"
#include "runs/run_folder.h"
#include "tasks/exported_run.h"
#include "tasks/registry.h"
#include "tests/add_a_task/label_lines.h"
#include "tests/add_a_task/labelling.h"
#include "tests/base/failure.h"
#include "tests/base/standard_output.h"
#include "tests/base/temp_dir.h"
#include "tests/tasks/listed_scores.h"
#include "tests/train/toy_task.h"

namespace stretto::tasks {
namespace {

using stretto::testing::failure;
using train::test::events, train::test::final_hash;

/// The recipe in a folder of its own, with lines of vowels and lines of consonants, in turn.
class LabelFamilyTest : public ::testing::Test {
 protected:
  LabelFamilyTest() {
    std::filesystem::copy_file(STRETTO_SOURCE_DIR "/tests/add_a_task/labelling.toml", recipe_);
    folder_.write("train.tsv", lines(64));
    folder_.write("valid.tsv", lines(10));
    experiment_ = load({});
  }

  /// In the place of a line in families/registry.cpp and one in families/engine_registry.cpp.
  static void SetUpTestSuite() {
    if (experiment::TaskChoice().select("labelling")) return;
    experiment::add_family(experiment::labelling_spec());
    add_family({"labelling", &label_family});
  }

  static std::string label(int64_t i) { return i % 2 == 0 ? "vowels" : "consonants"; }
  static std::string text(int64_t i) {
    const std::string letters = i % 2 == 0 ? "aeiou" : "bcdfg";
    std::string line;
    for (int64_t k = 0; k < 1 + i % 7; ++k) line += letters[static_cast<size_t>((i + k) % 5)];
    return line;
  }
  static std::string lines(int64_t count) {
    std::string all;
    for (int64_t i = 0; i < count; ++i) all += label(i) + "\t" + text(i) + "\n";
    return all;
  }

  experiment::LoadedExperiment load(const std::vector<std::string>& overrides) const {
    return experiment::load_experiment(recipe_, overrides);
  }

  std::unique_ptr<FamilyTask> make_task() const {
    return family_.make_task(experiment_.options, family_.first_assets(experiment_), {});
  }

  /// What `stretto train` does with a family.
  /// @param until  updates after which the run is saved and left; 0 = it trains to its end
  train::TrainerSetup train(const std::string& name, int64_t until = 0) const {
    auto run = runs::RunFolder::open_for_training(folder_ / name);
    run.write_config(experiment_.resolved_toml, experiment_.config_hash);
    if (run.read_assets().empty()) run.write_assets(family_.first_assets(experiment_));
    const auto& options = experiment_.options;
    const auto task = family_.make_task(options, run.read_assets(), {});
    task->require_known_data(/*warn=*/true);
    train::TrainerSetup setup;
    setup.run = options.run;
    setup.train = options.train;
    setup.eval = options.eval.validation();
    setup.optim = options.optim;
    setup.schedule = options.schedule;
    setup.report = options.report;
    setup.loading = task->loading();
    setup.batch_size = task->update_bound();
    setup.run_directory = run.directory();
    setup.identity = {.run_id = run.run_id(),
                      .config_hash = experiment_.config_hash,
                      .tokenizer = runs::tokenizer_hashes(task->assets())};
    setup.description.facts = task->facts();
    setup.description.display = experiment::display_of(options);
    setup.until = until;
    EXPECT_EQ(train::Trainer(*task, setup).run(), ExitCode::kOk);
    return setup;
  }

  /// What the command line makes of the words behind a command.
  experiment::FamilyValues asked(
      const experiment::FamilyCommand* (*of)(const experiment::FamilySpec& family),
      std::vector<std::string> words) const {
    CLI::App app;
    cli::FamilyOptions options(cli::commands_of_families(of));
    options.declare(app);
    std::reverse(words.begin(), words.end());  // as CLI11 takes them
    app.parse(words);
    options.require_own(experiment_.options);
    return options.values(experiment_.options);
  }

  const Family& family_ = label_family();
  testing::TempDir folder_;
  const std::filesystem::path recipe_ = folder_ / "labelling.toml";
  experiment::LoadedExperiment experiment_;
};

// The recipe, and what `check` says of it.

TEST_F(LabelFamilyTest, TheRecipeHasTheSectionsOfTheFamily) {
  const auto& [data, model] = labelling_of(experiment_.options);
  EXPECT_EQ(data.train, std::vector<std::string>{(folder_ / "train.tsv").string()});
  EXPECT_EQ(data.max_samples, 16);
  EXPECT_EQ(data.max_bytes, 0);
  EXPECT_EQ(model.d_model, 8);
  EXPECT_EQ(experiment_.options.train.max_steps, 60);
  EXPECT_NE(load({"data.max_bytes=20"}).resolved_toml.find("\nmax_bytes = 20  # default 0 bytes"),
            std::string::npos);
}

TEST_F(LabelFamilyTest, TheNameOfTheTaskChoosesTheFamily) {
  EXPECT_EQ(&family_of(experiment_.options), &family_);
  EXPECT_NE(experiment::find_task_rules(experiment_.options), nullptr);
  EXPECT_EQ(experiment::display_of(experiment_.options).loss_unit.count, "lines");
  const Error error =
      failure(ExitCode::kUsage, [&] { load({"task.name=language_identification"}); });
  EXPECT_NE(error.message().find("did you mean \"labelling\"?"), std::string::npos)
      << error.message();
}

TEST_F(LabelFamilyTest, CheckNamesTheKeyAndWhatIsWrong) {
  const auto expect_problem = [&](const std::string& override_text, const std::string& what) {
    const Error error = failure(ExitCode::kUsage, [&] { load({override_text}); });
    EXPECT_NE(error.message().find(override_text), std::string::npos) << error.message();
    EXPECT_NE(error.message().find(what), std::string::npos) << error.message();
  };
  expect_problem("data.train=[]", "there is no text to learn from");
  expect_problem("data.valid=" + (folder_ / "train.tsv").string(), "is a file for training too");
  expect_problem("data.test=/nowhere/test.tsv", "no file /nowhere/test.tsv");
  expect_problem("data.label_kind=number",
                 "is a key of text_classification, and task.name is labelling");
  expect_problem("eval.best_metric=bleu", "must be one of accuracy, loss");
}

TEST_F(LabelFamilyTest, ItsNumbersAreThoseOfItsList) {
  const auto task = make_task();
  expect_listed(task->validate(), experiment_.options);
  expect_listed(task->measures({.losses = {3}, .weights = {4}, .statistics = {2}, .counts = {4}}),
                experiment_.options);
}

// Data.

TEST_F(LabelFamilyTest, LabelsAreAFileOfTheRun) {
  const Assets assets = family_.first_assets(experiment_);
  EXPECT_EQ(assets, (Assets{{"labels.txt", "consonants\nvowels\n"}}));
  EXPECT_EQ(family_.make_task(experiment_.options, assets, {})->assets(), assets);
}

TEST_F(LabelFamilyTest, TheNetworkOfARunHasARowForEachLabel) {
  const auto network = family_.make_network(experiment_.options, {{"labels.txt", "a\nb\nc\n"}},
                                            /*draws_weights=*/false);
  const at::Tensor output = network->named_parameters()["output.weight"];
  EXPECT_EQ(output.sizes(), at::IntArrayRef({3, 8}));
  EXPECT_TRUE(output.is_meta());
}

TEST_F(LabelFamilyTest, LinesWithoutALabelAndUnknownLabelsAreNamed) {
  const auto said_of = [&](const std::string& valid) {
    labelling_of(experiment_.options).data.valid = {folder_.write("other.tsv", valid)};
    return failure(ExitCode::kBadData, [&] { make_task(); }).message();
  };
  const std::string unknown = said_of("vowels\tae\nconsonants\tbc\nvowles\tou\n");
  EXPECT_NE(unknown.find("other.tsv:3: the training text has no label `vowles`"), std::string::npos)
      << unknown;
  const std::string no_tab = said_of("vowels\tae\nconsonants bc\n");
  EXPECT_NE(no_tab.find("other.tsv:2: the line has no tab"), std::string::npos) << no_tab;
}

TEST_F(LabelFamilyTest, TextWithoutALineIsRefused) {
  auto& data = labelling_of(experiment_.options).data;
  data.train = {folder_.write("empty", "")};
  data.valid.clear();
  const auto task = make_task();
  EXPECT_FALSE(task->can_validate());
  const Error error = failure(ExitCode::kBadData, [&] { task->require_known_data(true); });
  EXPECT_NE(std::string(error.what()).find("data.train"), std::string::npos);
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
  const std::vector<std::pair<std::string, std::string>> expected{{"text", text(line)},
                                                                  {"label", label(line)}};
  EXPECT_EQ(task->show(batch, 5), expected);
}

TEST_F(LabelFamilyTest, ProcessesWithOtherTextDisagree) {
  const auto mine = make_task()->data_facts();
  const auto facts_with = [&](const std::string& valid) {
    labelling_of(experiment_.options).data.valid = {folder_.write("other.tsv", valid)};
    return make_task()->data_facts();
  };
  EXPECT_EQ(facts_with(lines(10)).at(1).value, mine.at(1).value);
  const auto other = facts_with("consonants" + lines(10).substr(label(0).size()));
  EXPECT_EQ(other.at(0).value, mine.at(0).value);
  EXPECT_NE(other.at(1).value, mine.at(1).value);
}

// Batches of lines that are about equally long.
TEST_F(LabelFamilyTest, ABatchIsBoundedByLinesAndByBytes) {
  labelling_of(experiment_.options).data.max_bytes = 20;
  const auto task = make_task();
  const auto& source = task->train_batches();
  EXPECT_GT(source.num_batches(), 4);
  for (int64_t i = 0; i < source.num_batches(); ++i) {
    const auto batch = source.load(1, i);
    EXPECT_LE(batch.num_sequences(), 16);
    EXPECT_LE(batch.column<int64_t>(kText).num_rows(), 20);
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
  const at::Tensor loss = task->loss(task->prepare(batch), {}).losses.at(0);
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
  const auto expected = task->loss(task->prepare(whole), {});
  double loss = 0, right = 0, weight = 0;
  int64_t lines = 0;
  for (int64_t i = 0; i < 3; ++i) {
    const auto part = data::even_part(whole, i, 3);
    const auto sums = task->loss(task->prepare(part), {});
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
  const auto setup = train("run");
  const auto steps = events(setup, "train"), valid = events(setup, "valid");
  ASSERT_EQ(steps.size(), 60U);
  EXPECT_EQ(steps.front().number("lines"), 16);
  EXPECT_GT(steps.front().number("lines_per_second"), 0);
  EXPECT_LT(steps.back().loss.value(), steps.front().loss.value());
  ASSERT_EQ(valid.size(), 3U);
  EXPECT_EQ(valid.back().number("accuracy"), 1);
}

TEST_F(LabelFamilyTest, AResumedRunEndsWithTheSameWeights) {
  const auto whole = train("whole");
  train("parts", /*until=*/7);
  const auto before = events(train("parts", /*until=*/33), "train");
  const auto parts = train("parts");
  EXPECT_EQ(final_hash(parts), final_hash(whole));
  const auto after = events(parts, "train");
  ASSERT_EQ(before.size(), 33U);
  ASSERT_EQ(after.size(), 60U);
  EXPECT_EQ(after.at(32).seconds, before.back().seconds) << "it began anew";
}

TEST_F(LabelFamilyTest, AFinishedRunIsEvaluatedAndLabelsLines) {
  train("run");
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

TEST_F(LabelFamilyTest, OptionsOfItsOwnReachItFromTheCommandLine) {
  const auto infer = [](const experiment::FamilySpec& family) { return &family.infer; };
  const auto eval = [](const experiment::FamilySpec& family) { return &family.eval; };
  train("run");
  const std::string run = (folder_ / "run").string();
  const std::string input = folder_.write("input.txt", "uoie\ndcbf\n");
  ::testing::internal::CaptureStdout();
  family_.infer({.experiment = experiment_,
                 .run_directory = run,
                 .files = {input},
                 .own = asked(infer, {"--with-text"})},
                {});
  family_.eval({.experiment = experiment_,
                .run_directory = run,
                .checkpoint = "last",
                .own = asked(eval, {"--decimals", "2"})},
               {});
  const std::string told = ::testing::internal::GetCapturedStdout();
  EXPECT_TRUE(told.starts_with("vowels\tuoie\nconsonants\tdcbf\nloss ")) << told;
  EXPECT_TRUE(told.ends_with("  accuracy 1.00\n")) << told;

  const Error error = failure(ExitCode::kUsage, [&] { asked(infer, {"--beam", "4"}); });
  EXPECT_EQ(error.advice(), "its own options are --with-text");
}

/// What `stretto plan` prints of the recipe.
std::string planned(std::vector<std::string> words) {
  CLI::App app;
  const auto run = cli::declare_plan(app);
  words.insert(words.begin(), {"--scaling", "--world-size", "2"});
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  app.parse(words);
  return testing::standard_output_of([&] { EXPECT_EQ(run(), 0); });
}

TEST_F(LabelFamilyTest, APlanCountsLinesAndNeedsNoTokenizer) {
  // [256, 8], [2, 8] and [2]; three times two operations for each weight of the output.
  constexpr double kLineFlops = 6.0 * 8 * 2;
  const auto json = nlohmann::json::parse(planned({recipe_.string(), "--gflops", "1", "--json"}));
  EXPECT_EQ(json["inputs"]["parameters"], 256 * 8 + 2 * 8 + 2);
  EXPECT_EQ(json["inputs"]["lines_per_micro_batch"], 16);
  EXPECT_NEAR(json["inputs"]["compute_seconds"].get<double>(), 16 * kLineFlops / 1e9, 1e-15);
  EXPECT_GT(json["lines_per_second"], 0);
  for (const auto& size : json["sizes"]) EXPECT_GT(size["lines_per_second"], 0);
  EXPECT_EQ(json["inputs"]["late_share"], 0.0);
  EXPECT_EQ(json["inputs"]["row_bytes"], 0.0);
  EXPECT_EQ(json.dump().find("token"), std::string::npos) << json;

  const std::string page = planned({recipe_.string(), "data.max_bytes=20"});
  EXPECT_NE(page.find("     lines/s  speed-up"), std::string::npos) << page;
  EXPECT_NE(page.find("assumed: data.max_bytes ends no micro-batch earlier (--units)\n"),
            std::string::npos)
      << page;

  const Error error = failure(ExitCode::kUsage, [&] {
    planned({recipe_.string(), "--vocab-rows", "8"});
  });
  EXPECT_NE(error.message().find("models of labelling do not have"), std::string::npos)
      << error.message();
}

TEST_F(LabelFamilyTest, NoClassOfTransformersIsEqualToItsModels) {
  train("run");
  const ExportRequest request{.experiment = experiment_,
                              .run_directory = (folder_ / "run").string(),
                              .checkpoint = "last",
                              .folder = (folder_ / "exported").string()};
  const auto run = open_exported_run(request);
  const Error error = failure(ExitCode::kUsage, [&] { family_.export_model(run, request); });
  EXPECT_NE(error.message().find("has no class in transformers"), std::string::npos)
      << error.message();
  EXPECT_FALSE(std::filesystem::exists(request.folder));
}

}  // namespace
}  // namespace stretto::tasks
