#include "families/text_classification/engine/text_classification.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiment/task_rules.h"
#include "families/text_classification/text_classification_display.h"
#include "families/text_classification/text_classification_options.h"
#include "tests/base/failure.h"
#include "tests/data/squad/span_tokenizer.h"
#include "tests/families/text_classification/engine/sentences.h"
#include "tests/tasks/listed_scores.h"
#include "tests/tasks/size_in_events.h"
#include "tests/train/toy_task.h"

namespace stretto::tasks {
namespace {

using stretto::testing::failure;
using train::test::events;

// The loss.

TEST_F(TextClassificationTest, LossIsThatOfEachText) {
  const auto task = make_task();
  task->model().to(at::kDouble);
  auto& model = dynamic_cast<models::TextModel&>(task->model());
  const data::Batch batch = task->train_batches().load(0, 0);
  ASSERT_GT(batch.num_sequences(), 5);
  double slow = 0;
  int64_t right = 0;
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    const auto text = prepare_texts(data::part(batch, i, i + 1), model);
    const at::Tensor logits = label_logits(model, text, {});
    const int64_t label = batch.column<int64_t>(data::kLabelColumn).sequence(i).front();
    slow -= logits.log_softmax(1)[0][label].item<double>();
    right += logits.argmax(1).item<int64_t>() == label ? 1 : 0;
  }
  const auto sums = task->loss(task->prepare(batch), {});
  EXPECT_NEAR(sums.losses.at(0).item<double>(), slow, 1e-9 * slow);
  EXPECT_EQ(sums.statistics.at(0).item<double>(), static_cast<double>(right));
  EXPECT_EQ(task->weights(batch).at(0), static_cast<double>(batch.num_sequences()));
  EXPECT_EQ(sums.counts.at(1), batch.num_sequences());
  EXPECT_EQ(size_in_events(*task, batch, text_classification_display(sections()).loss_unit),
            task->weights(batch).at(0));
}

TEST_F(TextClassificationTest, CountsTextsWhereWeightsHaveAMeanOfOne) {
  auto& loss = sections().loss;
  const auto unit = [&] { return text_classification_display(sections()).loss_unit; };
  loss.class_weights = "balanced";
  EXPECT_EQ(unit().count, "texts");
  loss.class_weights = "list";
  EXPECT_EQ(unit().name, "weighted texts");
  EXPECT_EQ(unit().count, "") << "no event tells the sum of the weights";
  sections().data.label_separator = ",";
  EXPECT_EQ(unit().name, "texts") << "with several labels a text counts once";
}

/// Processes share a micro-batch, and a batch without memory is cut in halves.
TEST_F(TextClassificationTest, PartsOfABatchAddUpToItForEachKindOfLabels) {
  for (const std::string kind : {"one", "weighted", "several", "number"}) {
    sections().data.label = kind == "several" ? "tags" : kind == "number" ? "stars" : "label";
    sections().data.label_separator = kind == "several" ? "," : "";
    sections().data.label_kind = kind == "number" ? "number" : "class";
    sections().loss.class_weights = kind == "weighted" ? "balanced" : "none";
    const auto task = make_task();
    task->model().to(at::kDouble);
    const data::Batch whole = task->train_batches().load(0, 0);
    const auto expected = task->loss(task->prepare(whole), {});
    double loss = 0, weight = 0;
    for (int64_t i = 0; i < 3; ++i) {
      const data::Batch part = data::even_part(whole, i, 3);
      loss += task->loss(task->prepare(part), {}).losses.at(0).item<double>();
      weight += task->weights(part).at(0);
    }
    EXPECT_NEAR(loss, expected.losses.at(0).item<double>(), 1e-6 * loss) << kind;
    EXPECT_NEAR(weight, task->weights(whole).at(0), 1e-9 * weight) << kind;
  }
}

TEST_F(TextClassificationTest, BalancedWeightsMakeClassesCountEqually) {
  data::Batch samples = data::text_batch(1);
  for (const int64_t label : {0, 0, 0, 1}) {
    samples.sample_ids.push_back(samples.num_sequences());
    samples.column<int64_t>(data::kLabelColumn).append(std::vector<int64_t>{label});
  }
  const auto labels = data::Labels::given({"a", "b", "never"});
  auto options = sections();
  EXPECT_TRUE(class_weights(options, &labels, samples).empty());
  options.loss.class_weights = "balanced";
  const auto weights = class_weights(options, &labels, samples);
  ASSERT_EQ(weights.size(), 3U);
  EXPECT_NEAR(weights[0], 4.0 / 9, 1e-12);
  EXPECT_NEAR(weights[1], 4.0 / 3, 1e-12);
  EXPECT_EQ(weights[2], 1);
  options.loss.class_weights = "list";
  options.loss.class_weight_list = {1, 2};
  const Error error = failure(ExitCode::kUsage, [&] { class_weights(options, &labels, samples); });
  EXPECT_NE(error.advice().find("a, b, never"), std::string::npos) << error.advice();
}

// Scores.

TEST_F(TextClassificationTest, ItsNumbersAreThoseOfItsList) {
  for (const bool number : {false, true}) {
    sections().data.label = number ? "stars" : "label";
    sections().data.label_kind = number ? "number" : "class";
    const auto task = make_task();
    expect_listed(task->validate(), experiment_.options);
    train::Totals totals{.losses = {3}, .weights = {4}, .counts = {20, 4}};
    if (!number) totals.statistics = {2};
    const auto measures = task->measures(totals);
    EXPECT_EQ(measures.empty(), number);
    expect_listed(measures, experiment_.options);
  }
}

/// Two texts of label 0, three of label 1, and what a model says of them.
struct KnownPredictions {
  explicit KnownPredictions(const stretto::testing::TempDir& folder) {
    std::string lines = "text\tlabel\n";
    for (int i = 0; i < 5; ++i) {
      lines += "text " + std::to_string(i) + (i < 2 ? "\tno\n" : "\tyes\n");
    }
    data::LabelledOptions options;
    options.train = {folder.write("known.tsv", lines)};
    options.cache_dir = (folder / "cache").string();
    set = data::open_labelled_samples(options.train, options, *stretto::testing::small_tokenizer(),
                                      &labels);
    // Both probabilities, loss, weight; no sample overflowed.
    const double rows[5][4] = {{0.9, 0.1, 0.1, 1},
                               {0.2, 0.8, 1.6, 1},
                               {0.4, 0.6, 0.5, 2},
                               {0.3, 0.7, 0.35, 1},
                               {0.6, 0.4, 0.9, 2}};
    train::ScoreTable table(5, 5);
    for (int64_t i = 0; i < 5; ++i) std::ranges::copy(rows[i], table.row(i).begin());
    predictions = LabelPredictions(std::move(table), 2);
  }
  const data::Labels labels = data::Labels::given({"no", "yes"});
  std::shared_ptr<const data::LabelledSamples> set;
  LabelPredictions predictions{train::ScoreTable(0, 0), 0};
};

TEST_F(TextClassificationTest, ScoresAreThoseWorkedByHand) {
  const KnownPredictions known(folder_);
  const LabelOutputs outputs(sections(), &known.labels, {});
  const auto scores = label_scores(outputs, known.predictions, *known.set);
  const auto value = [&](const char* name) { return train::find_score(scores, name)->value; };
  EXPECT_NEAR(value("accuracy"), 3.0 / 5, 1e-12);
  EXPECT_NEAR(value("f1"), 4.0 / 6, 1e-12);                        // TP 2, FP 1, FN 1
  EXPECT_NEAR(value("macro_f1"), (4.0 / 6 + 2.0 / 4) / 2, 1e-12);  // of no: TP 1, FP 1, FN 1
  EXPECT_NEAR(value("matthews"), (2.0 * 1 - 1 * 1) / 6, 1e-12);
  EXPECT_NEAR(value("loss"), (0.1 + 1.6 + 0.5 + 0.35 + 0.9) / 7, 1e-12);
}

TEST_F(TextClassificationTest, SamplesAreTheMatrixAndTheMostWrongTexts) {
  const KnownPredictions known(folder_);
  const LabelOutputs outputs(sections(), &known.labels, {});
  const auto samples = label_samples(outputs, &known.labels, known.predictions, *known.set, 2);
  ASSERT_EQ(samples.size(), 3U);
  const auto& matrix = std::get<report::MatrixSample>(samples[0]);
  EXPECT_EQ(matrix.rows, known.labels.names());
  EXPECT_EQ(matrix.counts, (std::vector<std::vector<int64_t>>{{1, 1}, {1, 2}}));
  const auto& worst = std::get<report::RowsSample>(samples[1]).rows;
  EXPECT_EQ(worst[0].second, "text 1");
  EXPECT_EQ(worst[1].second, "no (0.200)");
  EXPECT_EQ(worst[2].second, "yes (0.800)");
  EXPECT_EQ(std::get<report::RowsSample>(samples[2]).rows[0].second, "text 4");
  EXPECT_TRUE(label_samples(outputs, &known.labels, known.predictions, *known.set, 0).empty());
}

TEST_F(TextClassificationTest, SeveralModelsPredictTheMeanOfTheirProbabilities) {
  const auto labels = data::Labels::given({"no", "yes"});
  const LabelOutputs one(sections(), &labels, {});
  const at::Tensor a = torch::tensor({{2.0, 0.0}}), b = torch::tensor({{-1.0, 0.5}});
  const auto mean = one.probabilities(one.mean_logits({a, b}));
  EXPECT_TRUE(at::allclose(mean.to(at::kFloat), (a.softmax(1) + b.softmax(1)) / 2));
  EXPECT_TRUE(one.mean_logits({a}).equal(a));
  auto options = sections();
  options.data.label_separator = ",";
  const LabelOutputs several(options, &labels, {});
  const auto means = several.probabilities(several.mean_logits({a, b}));
  EXPECT_TRUE(at::allclose(means.to(at::kFloat), (a.sigmoid() + b.sigmoid()) / 2));
}

// Commands.

TEST_F(TextClassificationTest, ARunLearnsIsEvaluatedAndLabelsLines) {
  const auto setup = train("run", 150);
  const auto valid = events(setup, "valid");
  ASSERT_FALSE(valid.empty());
  EXPECT_GT(valid.back().number("accuracy"), 0.95);
  EXPECT_LT(valid.back().number("loss"), 0.3);

  const auto json = eval("run");
  EXPECT_NEAR(json.at("accuracy").get<double>(), *valid.back().number("accuracy"), 1e-9);
  EXPECT_NEAR(json.at("loss").get<double>(), *valid.back().number("loss"), 1e-6);
  for (const char* key : {"f1", "macro_f1", "matthews", "checkpoint", "set", "samples"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }

  const std::string input = "ben likes a cake\n\xff\nanna likes a bus\n\n";
  const auto labels = infer("run", input, /*as_json=*/false);
  EXPECT_EQ(labels, (std::vector<std::string>{"food", "", "vehicle", labels.at(3)}));
  const auto objects = infer("run", input, /*as_json=*/true);
  ASSERT_EQ(objects.size(), 4U);
  const auto first = nlohmann::json::parse(objects[0]);
  EXPECT_EQ(first.at("label"), "food");
  EXPECT_NEAR(first.at("probabilities").at("food").get<double>() +
                  first.at("probabilities").at("vehicle").get<double>(),
              1, 1e-6);
  EXPECT_TRUE(nlohmann::json::parse(objects[1]).contains("problem"));
  const auto scored = infer("run", "ben likes a cake\n", false, /*scores=*/true);
  EXPECT_TRUE(scored.at(0).starts_with("food\tfood=0.")) << scored.at(0);
}

TEST_F(TextClassificationTest, PairsAreReadByColumnsAndByTabs) {
  sections().data.text2 = "text2";
  train("run", 60);
  EXPECT_GT(eval("run").at("accuracy").get<double>(), 0.9);
  const auto labels = infer("run", "ben likes a cake\teat it\nno tab\n", false);
  EXPECT_EQ(labels, (std::vector<std::string>{"food", ""}));
}

TEST_F(TextClassificationTest, SeveralLabelsAndNumbersAreLearned) {
  sections().data.label = "tags";
  sections().data.label_separator = ",";
  train("tags", 600);
  auto json = eval("tags");
  EXPECT_GT(json.at("accuracy").get<double>(), 0.8);
  EXPECT_GT(json.at("f1").get<double>(), 0.9);
  const auto tagged = infer("tags", "the dog likes a cake\n", /*as_json=*/true);
  EXPECT_TRUE(nlohmann::json::parse(tagged.at(0)).contains("labels"));

  sections().data.label = "stars";
  sections().data.label_separator.clear();
  sections().data.label_kind = "number";
  experiment_.options.eval.best_metric = "pearson";
  train("stars", 250);
  json = eval("stars");
  EXPECT_GT(json.at("pearson").get<double>(), 0.8);
  EXPECT_GT(json.at("spearman").get<double>(), 0.8);
  const double stars = std::stod(infer("stars", "ben likes a bus\n", false).at(0));
  EXPECT_NEAR(stars, 4, 1.2);
}

TEST_F(TextClassificationTest, ATabIsToldOnceWhereOneTextIsRead) {
  train("run", 3);
  const auto told = [&] {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(infer("run", "bread\ncake\teat it\ncar\tdrive it\n", false).size(), 3U);
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string warning = told();
  EXPECT_NE(warning.find("input.txt:2: has a tab"), std::string::npos) << warning;
  EXPECT_NE(warning.find("data.text2=2"), std::string::npos) << warning;
  EXPECT_EQ(warning.find("input.txt:3"), std::string::npos) << warning;
  sections().data.text2 = "text2";
  EXPECT_EQ(told().find("has a tab"), std::string::npos);
}

// Columns of another file, and pairs where the run had single texts.
TEST_F(TextClassificationTest, AFileOfOtherColumnsIsEvaluated) {
  train("run", 3);
  sections().data.test = {folder_.write("other.tsv", "a\tb\tgold\nbread\teat it\tfood\n")};
  sections().data.text = "a";
  sections().data.text2 = "b";
  sections().data.label = "gold";
  EXPECT_EQ(eval("run").at("samples"), 1);
}

TEST_F(TextClassificationTest, UnknownLabelsAtEvaluationAreErrors) {
  train("run", 3);
  sections().data.test = {folder_.write("test.tsv", "text\tlabel\nbread\tfood\ncar\tcar\n")};
  const Error error = failure(ExitCode::kBadData, [&] { eval("run"); });
  EXPECT_NE(std::string(error.what()).find("test.tsv:3: unknown label `car`"), std::string::npos)
      << error.what();
}

TEST_F(TextClassificationTest, LabelsAreKeptInTheRun) {
  sections().data.labels = {"vehicle", "food"};
  make_task();
  EXPECT_EQ(nlohmann::json::parse(assets_.at(kLabelsAsset)), (nlohmann::json{"vehicle", "food"}));
  assets_.erase(kLabelsAsset);
  const Error error =
      failure(ExitCode::kUsage, [&] { family_.make_task(experiment_.options, assets_, {}); });
  EXPECT_NE(std::string(error.what()).find("labels.json"), std::string::npos) << error.what();
}

TEST_F(TextClassificationTest, LabelsInAnotherOrderThanTrainedWithAreRefused) {
  const auto setup = train("labels", 3);
  EXPECT_GT(eval("labels")["accuracy"], 0);
  std::ofstream(folder_ / "labels/tokenizer/labels.json") << R"(["vehicle","food"])";
  const auto refused = [&](const auto& use) {
    const Error error = failure(ExitCode::kBadData, use);
    EXPECT_NE(std::string(error.what()).find("belongs to another labels.json than there is"),
              std::string::npos)
        << error.what();
  };
  refused([&] { eval("labels"); });
  refused([&] { infer("labels", "anna likes a cake\n", /*as_json=*/false); });
  refused([&] {
    const auto task = make_task();
    auto longer = setup;
    longer.train.max_steps = 6;
    longer.identity.tokenizer =
        runs::tokenizer_hashes(runs::RunFolder::open(folder_ / "labels").read_assets());
    train::Trainer(*task, longer).run();
  });
  experiment_.options.train.init_from = (folder_ / "labels").string();
  refused([&] { family_.first_assets(experiment_); });
}

}  // namespace
}  // namespace stretto::tasks
