// `stretto describe` of the sections that the tasks have, and of the keys that their parts have.
#include "config/describe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

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

TEST(DescribedTasks, HaveNoSectionOfAnotherTask) {
  Experiment defaults;
  const auto schema = experiment_schema(defaults);
  const auto* tasks = schema.find_switch("task");
  ASSERT_NE(tasks, nullptr);
  const auto every_file = config::with_part(schema, *tasks, nullptr);
  size_t described = 0, refused = 0;
  for (const auto& task : tasks->alternatives) {
    const auto own = sections_in(*task.schema);
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
        const Error error =
            stretto::testing::failure(ExitCode::kUsage, [&] { config::describe(schema, name); });
        EXPECT_EQ(std::string(error.what()),
                  "task." + task.name + " has no section `" + section + "`");
        for (const char* known : {"data", "tokenizer", "model", "model.lora", "eval"}) {
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

}  // namespace
}  // namespace stretto::experiment
