// `stretto describe` of the sections that the tasks have, and of the keys that their parts have.
#include "config/describe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "config/every_key.h"
#include "experiment/experiment_schema.h"
#include "tests/base/failure.h"

namespace stretto::experiment {
namespace {

/// Sections, lists of tables, and parts of sections: "model.encoder.lstm".
std::vector<std::string> sections_in(const config::Schema& schema) {
  std::vector<std::string> paths;
  for (const auto& section : schema.sections) paths.push_back(section.path);
  for (const auto& list : schema.lists) paths.push_back(list.path);
  for (const auto& section : schema.switches) {
    for (const auto& part : section.alternatives) {
      paths.push_back(section.section + "." + part.name);
    }
  }
  return paths;
}

TEST(DescribedTasks, EachCommandThatIsNamedIsOne) {
  Experiment defaults;
  const auto schema = experiment_schema(defaults);
  const std::string command = "stretto describe ";
  size_t tried = 0;
  for (const auto& task : schema.find_switch("task")->alternatives) {
    for (const std::string section : {"model", "data"}) {
      const std::string text = config::describe(schema, "task." + task.name + "." + section);
      for (size_t at = text.find(command); at != std::string::npos; at = text.find(command, at)) {
        at += command.size();
        const std::string named = text.substr(at, text.find('\n', at) - at);
        EXPECT_NO_THROW(config::describe(schema, named)) << task.name << ": " << named;
        ++tried;
      }
    }
  }
  EXPECT_GE(tried, 10U);
}

TEST(DescribedTasks, HaveNoSectionOfAnotherTask) {
  Experiment defaults;
  const auto schema = experiment_schema(defaults);
  const auto* tasks = schema.find_switch("task");
  ASSERT_NE(tasks, nullptr);
  const auto every_file = config::with_part(schema, *tasks, nullptr);
  size_t described = 0, refused = 0;
  for (const auto& task : tasks->alternatives) {
    auto own = sections_in(*task.schema);
    for (const auto& parts : task.schema->switches) {
      for (const auto& part : parts.alternatives) {
        for (const auto& section : part.schema->sections) own.push_back(section.path);
      }
    }
    for (const auto& other : tasks->alternatives) {
      for (const auto& section : sections_in(*other.schema)) {
        const std::string name = "task." + task.name + "." + section;
        const bool has_it = std::find(own.begin(), own.end(), section) != own.end() ||
                            every_file.find_section(section) != nullptr;
        if (has_it) {
          EXPECT_NO_THROW(config::describe(schema, name)) << name;
          ++described;
          continue;
        }
        // A list of DeepSpeech 2's blocks, and a number of airbench's.
        const bool is_a_key_too = section == "model.convolutions";
        if (is_a_key_too && task.name == "image_classification") continue;
        const Error error =
            stretto::testing::failure(ExitCode::kUsage, [&] { config::describe(schema, name); });
        EXPECT_EQ(std::string(error.what()), "task." + task.name + " has no " +
                                                 (is_a_key_too ? "key" : "section") + " `" +
                                                 section + "`");
        if (is_a_key_too) continue;
        for (const char* known : {"data", "tokenizer", "model", "model.lora", "eval"}) {
          if (task.schema->find_section(known) == nullptr) continue;
          EXPECT_NE(error.advice().find(std::string(" ") + known), std::string::npos)
              << name << ": " << error.advice();
        }
        ++refused;
      }
    }
  }
  EXPECT_GE(described, 40u);
  EXPECT_GE(refused, 30u);
}

TEST(DescribedTasks, HaveNoKeyOfAnotherTask) {
  Experiment defaults;
  const auto schema = experiment_schema(defaults);
  const Error error = stretto::testing::failure(
      ExitCode::kUsage, [&] { config::describe(schema, "task.masked_lm.data.train_src"); });
  EXPECT_EQ(std::string(error.what()), "task.masked_lm has no key `data.train_src`");
  EXPECT_EQ(error.advice(),
            "`stretto describe task.masked_lm.data` lists the keys of that section");
  EXPECT_NO_THROW(config::describe(schema, "task.masked_lm.optim.lr")) << "a key of every file";
}

TEST(DescribedParts, KeysAreFoundByThePathThroughThePart) {
  Experiment defaults;
  const auto schema = experiment_schema(defaults);
  for (const char* name : {"model.encoder.lstm.cell", "task.translation.model.encoder.lstm.cell",
                           "model.decoder.lstm.cell", "model.encoders.lstm.cell",
                           "model.encoders.1.lstm.cell", "model.heads.decoder.lstm.cell"}) {
    const std::string text = config::describe(schema, name);
    EXPECT_NE(text.find(".cell = \"lstm\"\n      LSTM, GRU"), std::string::npos) << name << text;
  }
  EXPECT_EQ(stretto::testing::failure(ExitCode::kUsage,
                                      [&] { config::describe(schema, "model.encoder.lstm.cel"); })
                .message(),
            "model.encoder.lstm has no key `cel`\n  did you mean `model.encoder.lstm.cell`?");
}

TEST(DescribedWords, EveryKeyIsDescribedByItsPath) {
  Experiment defaults;
  const auto schema = experiment_schema(defaults);
  const auto keys = config::every_key(schema);
  EXPECT_GT(keys.size(), 2 * schema.keys.size()) << "those of parts, lists and other tasks too";
  for (const auto& key : keys) {
    const std::string text = config::describe(schema, key.path);
    EXPECT_TRUE(text.starts_with("  " + key.key->path + " = ")) << key.path << "\n" << text;
  }
}

TEST(DescribedWords, AValueOfSeveralSectionsHasTheKeysOfItsPartsOnce) {
  Experiment defaults;
  const auto schema = experiment_schema(defaults);
  const std::string lstm = config::describe(schema, "lstm");
  EXPECT_TRUE(
      lstm.starts_with("`lstm` is a value of model.encoder.name, model.encoders.name\n\n"
                       "[model.encoder]  with name = \"lstm\"\n\n  cell = \"lstm\"\n"))
      << lstm;
  EXPECT_NE(lstm.find("\n\n`lstm` is a value of model.decoder.name, model.heads.decoder.name\n\n"
                      "[model.decoder]  with name = \"lstm\"\n\n  cell = \"lstm\"\n"),
            std::string::npos)
      << lstm;
  EXPECT_EQ(lstm.find("num_heads"), std::string::npos) << "a key of transformer" << lstm;
  const auto first = lstm.find("\n  bidirectional = true\n");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(lstm.find("\n  bidirectional = true\n", first + 1), std::string::npos) << lstm;
  // Both sides of a Transformer have the same keys.
  const std::string transformer = config::describe(schema, "transformer");
  EXPECT_TRUE(
      transformer.starts_with("`transformer` is a value of model.encoder.name, "
                              "model.decoder.name, model.encoders.name, "
                              "model.heads.decoder.name\n\n[model.encoder]"))
      << transformer;
}

TEST(DescribedWords, AnOptimizerHasTheKeysThatCountWithIt) {
  Experiment defaults;
  const std::string ftrl = config::describe(experiment_schema(defaults), "ftrl");
  EXPECT_NE(ftrl.find("\n[optim]  with name = \"ftrl\"\n\n  lr = "), std::string::npos) << ftrl;
  for (const char* key : {"l1", "l2", "initial_accumulator", "clip_norm", "larc_eta"}) {
    EXPECT_NE(ftrl.find(std::string("\n  ") + key + " = "), std::string::npos) << key;
  }
  for (const char* key : {"beta1", "beta2", "epsilon", "nesterov", "larc_mode", "lazy_tables"}) {
    EXPECT_EQ(ftrl.find(std::string("\n  ") + key + " = "), std::string::npos) << key;
  }
}

TEST(DescribedWords, AKeyOfAPartIsFoundByItsLastNameOrAValue) {
  Experiment defaults;
  const auto schema = experiment_schema(defaults);
  EXPECT_EQ(config::describe(schema, "bidirectional"),
            "  model.encoder.bidirectional = true\n"
            "      the first layers read in both directions, and give both states side by side\n"
            "      true or false; fixed for a run\n"
            "      in model.encoder.lstm, model.encoders.lstm\n");
  const std::string gru = config::describe(schema, "gru");
  EXPECT_TRUE(gru.starts_with(
      "`gru` is a value of model.encoder.lstm.cell, "
      "model.decoder.lstm.cell, "
      "task.text_classification.model.lstm.cell, task.language_model.model.lstm.cell, "
      "model.encoders.lstm.cell, "
      "model.heads.decoder.lstm.cell\n\n  model.encoder.cell = \"lstm\"\n"))
      << gru;
}

TEST(DescribedWords, WhatAValueIsCalledElsewhereIsAnsweredWithTheValue) {
  Experiment defaults;
  const auto schema = experiment_schema(defaults);
  const auto advice = [&](const char* name) {
    return stretto::testing::failure(ExitCode::kUsage, [&] { config::describe(schema, name); })
        .advice();
  };
  EXPECT_EQ(advice("rnn"), "did you mean `lstm`, a value of model.encoder.name?");
  // model.name is nearer to the top, and says that other keys choose the parts.
  EXPECT_EQ(advice("fconv"), "did you mean `conv`, a value of model.encoder.name?");
  EXPECT_EQ(advice("GRUCell"),
            "did you mean `gru`, a value of model.encoder.lstm.cell? the reset gate stands behind "
            "the recurrent product");
  EXPECT_EQ(advice("encoder"), "did you mean `model.encoder`?") << "a section, and no value";
  EXPECT_NE(advice("output_dir").find("--run DIR"), std::string::npos) << "no key does it";
}

}  // namespace
}  // namespace stretto::experiment
