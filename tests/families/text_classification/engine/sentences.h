#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "experiment/load_experiment.h"
#include "families/text_classification/engine/text_classification.h"
#include "families/text_classification/engine/text_classification_family.h"
#include "families/text_classification/requests.h"
#include "families/text_classification/text_classification_options.h"
#include "models/bert_options.h"
#include "tests/base/standard_output.h"
#include "tests/base/temp_dir.h"
#include "tests/tasks/train_family.h"

/// A small classifier and its sentences, for tests of its task and its family.
namespace stretto::tasks {

/// Sentences of a tiny grammar: what is eaten is food, what is driven is a vehicle.
class TextClassificationTest : public ::testing::Test {
 protected:
  TextClassificationTest() {
    experiment_.options.task = experiment::TextClassificationOptions{};
    auto& own = sections();
    own.data.train = {folder_.write("train.tsv", rows(300, 1))};
    own.data.valid = {folder_.write("valid.tsv", rows(60, 2))};
    own.data.cache_dir = (folder_ / "cache").string();
    own.data.max_text_tokens = 24;
    own.data.max_tokens = 240;
    own.tokenizer.vocab_size = 60;
    encoder().preset = "none";
    encoder().num_layers = 1;
    encoder().d_model = 16;
    encoder().num_heads = 2;
    encoder().ffn_dim = 32;
    encoder().max_positions = 24;
    encoder().dropout = encoder().attention_dropout = encoder().head_dropout = 0;
    own.eval.max_tokens = 100;
    experiment_.options.report.samples = 3;
    experiment_.options.eval.best_metric = "accuracy";
  }

  experiment::TextClassificationOptions& sections() {
    return experiment_.options.task.as<experiment::TextClassificationOptions>();
  }

  models::BertOptions& encoder() { return sections().model.as<models::BertOptions>(); }

  /// Columns text, text2 (an answer), label (food or vehicle), stars (a number), tags.
  static std::string rows(int64_t count, uint64_t seed) {
    const std::vector<std::string> names{"cake", "bread", "car", "bus"},
        who{"anna", "ben", "the dog"};
    RandomStream random(seed);
    std::string text = "text\ttext2\tlabel\tstars\ttags\n";
    for (int64_t i = 0; i < count; ++i) {
      const size_t kind = random.below(4), person = random.below(3);
      const bool is_food = kind < 2;
      text += who[person] + " likes a " + names[kind] + "\t" + (is_food ? "eat it" : "drive it") +
              "\t" + (is_food ? "food" : "vehicle") + "\t" + std::to_string(kind + 1) + "\t" +
              (is_food ? "food" : "vehicle") + (person == 2 ? ",animal" : "") + "\n";
    }
    return text;
  }

  std::unique_ptr<FamilyTask> make_task() {
    assets_ = family_.first_assets(experiment_);
    return family_.make_task(experiment_.options, assets_, {});
  }

  train::TrainerSetup train(const std::string& name, int64_t updates) {
    return train_family(family_, experiment_, folder_ / name, {.updates = updates, .lr = 0.003});
  }

  static std::string output_of(const std::function<int()>& command) {
    return stretto::testing::standard_output_of([&] { EXPECT_EQ(command(), 0); });
  }

  nlohmann::json eval(const std::string& run) {
    return nlohmann::json::parse(output_of([&] {
      return family_.eval({.experiment = experiment_,
                           .run_directory = (folder_ / run).string(),
                           .checkpoint = "last",
                           .json = true},
                          {});
    }));
  }

  std::vector<std::string> infer(const std::string& run, const std::string& input, bool as_json,
                                 bool scores = false) {
    const std::string file = folder_.write("input.txt", input);
    auto lines =
        split(output_of([&] {
                return family_.infer({.experiment = experiment_,
                                      .run_directory = (folder_ / run).string(),
                                      .checkpoints = "last",
                                      .files = {file},
                                      .json = as_json,
                                      .own = TextClassificationInferArguments{.scores = scores}},
                                     {});
              }),
              '\n');
    if (!lines.empty() && lines.back().empty()) lines.pop_back();
    return lines;
  }

  const Family& family_ = text_classification_family();
  testing::TempDir folder_;
  experiment::LoadedExperiment experiment_;
  Assets assets_;
};

}  // namespace stretto::tasks
