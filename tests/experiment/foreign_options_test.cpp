#include "experiment/foreign_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>

#include "config/load.h"
#include "config/suggest.h"
#include "experiment/experiment_schema.h"
#include "tests/experiment/foreign_image_options.h"
#include "tests/experiment/foreign_language_options.h"
#include "tests/experiment/foreign_options.h"

namespace stretto::experiment {
namespace {

using foreign::Option;

constexpr const char* kText = "[task]\nname = \"text_classification\"\n";
constexpr const char* kLanguage = "[task]\nname = \"language_model\"\n";
constexpr const char* kPictures = "[task]\nname = \"image_classification\"\n";
constexpr const char* kRecurrent = "[task]\nname = \"language_model\"\n[model]\nname = \"lstm\"\n";

/// What `check` says of a file with this key: one hint, or the first of several problems.
std::string answer_to(const std::string& task, const std::string& typed) {
  Experiment options, fallback;
  std::vector<config::Problem> problems;
  config::load_text(task, "my.toml", "/nowhere", {typed + "=1"}, experiment_schema(options),
                    experiment_schema(fallback), problems);
  return problems.empty() ? "" : problems.front().what + "\n" + problems.front().hint;
}

enum class Answer { kRight, kDoubtful, kWrong };

Answer judged(const std::string& answer, const std::string& typed, const Option& option,
              const config::Schema& schema) {
  if (typed == option.meant) return Answer::kRight;  // it has this name here too
  const std::string hint = answer.substr(answer.find('\n') + 1);
  const std::string key = "`" + std::string(option.meant) + "`";
  const std::string with_value = "`" + std::string(option.meant) + " = ";
  const bool is_key = schema.find(option.meant) != nullptr;
  const bool right = is_key ? hint.starts_with("did you mean " + key) ||
                                  hint.starts_with("perhaps you meant " + key) ||
                                  hint.starts_with("did you mean " + with_value) ||
                                  hint.starts_with("perhaps you meant " + with_value) ||
                                  hint.find(" or " + key) != std::string::npos
                            : hint.find(option.meant) != std::string::npos;
  if (right) return Answer::kRight;
  return hint.starts_with("did you mean ") ? Answer::kWrong : Answer::kDoubtful;
}

struct Toolkit {
  const char* name;
  const char* task;
  std::span<const Option> options;
};

// Nine in ten lead to the right key, and no wrong one is named without a word of doubt.
TEST(ForeignOptions, AHundredOfEachToolkitLeadToTheirKeys) {
  size_t transformers = 0;
  for (const Toolkit& toolkit :
       {Toolkit{"transformers, text", kText, foreign::kTransformersOfText},
        Toolkit{"transformers, translation", "", foreign::kTransformersOfTranslation},
        Toolkit{"fairseq", "", foreign::kFairseq}, Toolkit{"OpenNMT-py", "", foreign::kOpenNmt},
        Toolkit{"Marian", "", foreign::kMarian}}) {
    SCOPED_TRACE(toolkit.name);
    const bool is_transformers = std::string(toolkit.name).starts_with("transformers");
    if (is_transformers) {
      transformers += toolkit.options.size();
    } else {
      EXPECT_GE(toolkit.options.size(), 100U);
    }
    Experiment experiment;
    if (*toolkit.task != '\0') experiment.task.select("text_classification");
    const auto schema = experiment_schema(experiment);
    size_t right = 0;
    std::string others;
    for (const Option& option : toolkit.options) {
      const std::string answer = answer_to(toolkit.task, option.typed);
      const Answer judgement = judged(answer, option.typed, option, schema);
      EXPECT_NE(judgement, Answer::kWrong) << option.typed << ", meant " << option.meant << "\n"
                                           << answer;
      if (judgement == Answer::kRight) {
        ++right;
      } else {
        others += "\n" + std::string(option.typed) + ", meant " + option.meant + "\n" + answer;
      }
    }
    EXPECT_GE(right * 10, toolkit.options.size() * 9) << others;
    RecordProperty(toolkit.name, std::to_string(right));
  }
  EXPECT_GE(transformers, 100U);
}

// What somebody has in his hand who trained a language model, or on pictures, elsewhere.
TEST(ForeignOptions, ThoseOfOtherFamiliesLeadToTheirKeys) {
  for (const Toolkit& toolkit :
       {Toolkit{"torchvision", kPictures, foreign::kTorchvision},
        Toolkit{"timm", kPictures, foreign::kTimm},
        Toolkit{"nanoGPT", kLanguage, foreign::kNanoGpt},
        Toolkit{"awd-lstm-lm", kRecurrent, foreign::kAwdLstm},
        Toolkit{"run_clm.py", kLanguage, foreign::kRunClm},
        Toolkit{"fairseq, language_modeling", kLanguage, foreign::kFairseqOfLanguage}}) {
    SCOPED_TRACE(toolkit.name);
    Experiment options, fallback;
    std::vector<config::Problem> problems;
    config::load_text(toolkit.task, "my.toml", "/nowhere", {}, experiment_schema(options),
                      experiment_schema(fallback), problems);
    const auto schema = experiment_schema(options);
    for (const Option& option : toolkit.options) {
      const std::string answer = answer_to(toolkit.task, option.typed);
      EXPECT_EQ(judged(answer, option.typed, option, schema), Answer::kRight)
          << option.typed << ", meant " << option.meant << "\n"
          << answer;
    }
  }
}

std::vector<config::Schema> schemas_of_families(std::vector<Experiment>& experiments) {
  const auto names = TaskChoice::names();
  experiments.resize(names.size());
  std::vector<config::Schema> schemas;
  for (size_t i = 0; i < names.size(); ++i) {
    experiments[i].task.select(names[i]);
    schemas.push_back(experiment_schema(experiments[i]));
  }
  return schemas;
}

TEST(ForeignOptions, LeadToKeysThatSomeFamilyHasAndAreNone) {
  std::vector<Experiment> experiments;
  const auto schemas = schemas_of_families(experiments);
  std::set<std::string_view> names;
  for (const auto& option : foreign_options()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name << " stands twice";
    EXPECT_FALSE(option.key.empty() && option.words.empty()) << option.name;
    bool known = option.key.empty();
    for (const auto& schema : schemas) {
      known = known || schema.find(std::string(option.key)) != nullptr;
      for (const auto& key : schema.keys) {
        EXPECT_NE(key.path, option.name);
        EXPECT_FALSE(key.path.ends_with("." + std::string(option.name)))
            << option.name << " is the name of " << key.path;
      }
    }
    EXPECT_TRUE(known) << option.name << " leads to " << option.key;
  }
}

// An entry that is in no key's way: it would never be seen, or hide what the key says.
TEST(ForeignOptions, ContradictNoOtherNameOfAKey) {
  std::vector<Experiment> experiments;
  for (const auto& schema : schemas_of_families(experiments)) {
    for (const auto& option : foreign_options()) {
      std::set<std::string> called;
      for (const auto& key : schema.keys) {
        for (const auto& other : key.other_names) {
          if (other.name == option.name) called.insert(key.path);
        }
      }
      if (called.empty()) continue;
      EXPECT_TRUE(called.contains(std::string(option.key)))
          << option.name << " is another name of " << *called.begin();
    }
  }
}

TEST(ForeignOptions, WhatNoKeyDoesIsAnsweredWithWhatToDo) {
  EXPECT_EQ(answer_to("", "train.output_dir"),
            "unknown key `train.output_dir`\nthe folder of a run is an option of the command: "
            "stretto train CONFIG --run DIR; it holds all that the run writes");
  EXPECT_NE(answer_to("", "run.gpus").find("--processes N"), std::string::npos);
  const std::string memory = answer_to("", "train.gradient_checkpointing");
  for (const char* word : {"there is no gradient checkpointing", "data.max_tokens",
                           "train.update_freq", "mixed_bf16", "sharded"}) {
    EXPECT_NE(memory.find(word), std::string::npos) << memory;
  }
  for (const char* typed : {"eval.strategy", "eval.steps"}) {
    EXPECT_TRUE(answer_to("", typed).ends_with(
        "did you mean `eval.every`? a number of updates (integer, default 1000, in updates)"))
        << answer_to("", typed);
  }
  EXPECT_NE(answer_to("", "model.lora.r").find("did you mean `model.lora.rank`?"),
            std::string::npos);
}

TEST(ForeignOptions, SpellingAloneIsAGuess) {
  EXPECT_NE(answer_to("", "train.max_stpes").find("\nperhaps you meant `train.max_steps`?"),
            std::string::npos);
  EXPECT_NE(answer_to("", "train.maxSteps").find("\ndid you mean `train.max_steps`?"),
            std::string::npos);
  EXPECT_NE(answer_to("", "optim.learning_rate").find("\ndid you mean `optim.lr`?"),
            std::string::npos);
}

TEST(ForeignOptions, DefaultsAreThoseOfTheTask) {
  for (const auto& [task, metric] : {std::pair{"translation", "nll"},
                                     {"masked_lm", "nll"},
                                     {"question_answering", "f1"},
                                     {"text_classification", "accuracy"}}) {
    const std::string file = "[task]\nname = \"" + std::string(task) + "\"\n";
    const std::string answer = answer_to(file, "eval.metric_for_best_model");
    EXPECT_NE(answer.find(std::string("default \"") + metric + "\""), std::string::npos) << answer;
  }
}

}  // namespace
}  // namespace stretto::experiment
