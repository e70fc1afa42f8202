#include "cli/family_options.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "families/language_model/language_model_options.h"
#include "tests/base/failure.h"

namespace stretto::cli {
namespace {

using experiment::command_option;
using experiment::CommandOption;

struct Asked {
  std::string src;
  std::vector<std::string> data;
  int64_t nbest = 5;
  bool scores = false;
};

CommandOption data_option() {
  return command_option(
      &Asked::data,
      {.name = "--data", .type = "FILE", .help = "texts", .data_keys = {"data.valid"}});
}

CommandOption nbest_option() {
  return {.name = "--nbest",
          .type = "N",
          .help = "how many",
          .value = int64_t{0},
          .least = 1,
          .most = 9};
}

/// Two families: one that states keys, and one that takes values.
std::vector<CommandOfFamily> two_families() {
  auto keyed = nbest_option();
  keyed.key = "decode.nbest";
  return {
      {"translation",
       {.options =
            {command_option(
                 &Asked::src,
                 {.name = "--src", .type = "FILE", .help = "source", .data_keys = {"data.valid"}}),
             keyed,
             {.name = "--sample", .help = "draw", .value = false, .key = "decode.method=sample"}}}},
      {"masked_lm",
       {.options = {data_option(), command_option(&Asked::nbest, nbest_option()),
                    command_option(&Asked::scores, {.name = "--scores", .help = "numbers"})}}}};
}

experiment::Experiment of_task(const std::string& name) {
  experiment::Experiment experiment;
  experiment.task.select(name);
  return experiment;
}

/// Options of a command that was called with `words`.
struct Called {
  explicit Called(std::vector<std::string> words,
                  std::vector<CommandOfFamily> families = two_families())
      : options(std::move(families)) {
    app.set_help_flag();
    options.declare(app);
    std::reverse(words.begin(), words.end());
    app.parse(words);
  }
  CLI::App app;
  FamilyOptions options;
};

using Words = std::vector<std::string>;

TEST(FamilyOptions, ThoseOfTheFamilyPass) {
  Called({"--src", "a"}).options.require_own(of_task("translation"));
  Called({"--data", "a", "--nbest", "2"}).options.require_own(of_task("masked_lm"));
  Called({}).options.require_own(of_task("question_answering"));
}

TEST(FamilyOptions, OthersAreRefusedWithTheFamilyAndItsOwn) {
  const Error error = testing::failure(ExitCode::kUsage, [] {
    Called({"--src", "a"}).options.require_own(of_task("masked_lm"));
  });
  EXPECT_EQ(std::string(error.what()),
            "--src is an option for runs of translation, and this run's task.name is "
            "\"masked_lm\"");
  EXPECT_EQ(error.advice(), "its own options are --nbest, --data, --scores");
  const Error none = testing::failure(ExitCode::kUsage, [] {
    Called({"--nbest", "2"}).options.require_own(of_task("question_answering"));
  });
  EXPECT_EQ(none.advice(), "write `decode.nbest=2` in its place");
  EXPECT_EQ(
      std::string(none.what()).find("--nbest is an option for runs of translation, masked_lm"), 0U);
}

TEST(FamilyOptions, OthersThatStateAKeyOfTheRunAreAnsweredWithIt) {
  auto families = two_families();
  families[0].command.options.push_back({.name = "--beam",
                                         .type = "N",
                                         .help = "how many",
                                         .value = int64_t{0},
                                         .least = 1,
                                         .most = 9,
                                         .key = "decode.beam_size"});
  const auto advice = [&](const Words& words, const experiment::Experiment& run) {
    return testing::failure(ExitCode::kUsage,
                            [&] { Called(words, families).options.require_own(run); })
        .advice();
  };
  const auto lm = of_task("language_model");
  EXPECT_EQ(advice({"--nbest", "2"}, lm), "write `decode.nbest=2` in its place");
  EXPECT_EQ(advice({"--sample"}, lm), "write `decode.method=sample` in its place");
  EXPECT_EQ(advice({"--beam", "4"}, lm),
            "write `decode.method=beam decode.beam_size=4` in its place");
  auto searching = lm;
  searching.task.as<experiment::LanguageModelOptions>().decode.method = "beam";
  EXPECT_EQ(advice({"--beam", "4"}, searching), "write `decode.beam_size=4` in its place");
  EXPECT_EQ(advice({"--beam", "4"}, of_task("masked_lm")),
            "its own options are --nbest, --data, --scores");
}

TEST(FamilyOptions, AreDeclaredOnceInTheOrderOfTheFamilies) {
  const Called called({});
  std::vector<std::string> names;
  for (const auto* option : called.app.get_options()) names.push_back(option->get_name());
  EXPECT_EQ(names, (Words{"--src", "--nbest", "--sample", "--data", "--scores"}));
}

TEST(FamilyOptions, WordsOfOneFamilyStandBehindThoseOfOthers) {
  auto families = two_families();
  families[1].command.options[1].help = "fillers, 5 by default";
  EXPECT_NE(Called({}, families).app.help().find("how many; fillers, 5 by default"),
            std::string::npos);
}

TEST(FamilyOptions, OfTwoTypesByOneNameAreAFaultOfTheProgram) {
  auto families = two_families();
  families[1].command.options[1].value = std::string();
  const Error error =
      testing::failure(ExitCode::kInternal, [&] { const FamilyOptions options(families); });
  EXPECT_EQ(std::string(error.what()), "--nbest has values of two types");
}

TEST(FamilyOptions, FillTheStructOfTheFamilyAndLeaveItsDefaults) {
  const Called given({"--data", "a", "--data", "b", "--scores"});
  const auto values = given.options.values(of_task("masked_lm"));
  const auto& asked = values.as<Asked>();
  EXPECT_EQ(asked.data, (Words{"a", "b"}));
  EXPECT_TRUE(asked.scores);
  EXPECT_EQ(asked.nbest, 5);
  EXPECT_EQ(Called({"--nbest", "2"}).options.values(of_task("masked_lm")).as<Asked>().nbest, 2);
  EXPECT_EQ(Called({}).options.values(of_task("masked_lm")).as<Asked>().nbest, 5);
}

TEST(FamilyOptions, StateKeysForTheFamiliesThatSaySo) {
  const auto stated = [&](const std::string& family, const Words& words) {
    return Called(words).options.stated_keys(family);
  };
  EXPECT_EQ(stated("translation", {"--src", "a", "--sample", "--nbest", "2"}),
            (Words{"decode.nbest=2", "decode.method=sample"}));
  EXPECT_EQ(stated("translation", {"--sample=false"}), Words{});
  EXPECT_EQ(stated("masked_lm", {"--nbest", "2"}), Words{});
}

TEST(FamilyOptions, AreBoundedAsTheFamilySays) {
  EXPECT_THROW(Called({"--nbest", "10"}), CLI::ValidationError);
  EXPECT_THROW(Called({"--nbest", "0"}), CLI::ValidationError);
}

TEST(FamilyOptions, AreChecked) {
  auto families = two_families();
  families[1].command.options[0].check = experiment::must_exist("look for it");
  const Called given({"--data", "/nowhere/a.txt"}, families);
  const Error missing = testing::failure(ExitCode::kUsage, [&] { given.options.check_values(); });
  EXPECT_EQ(std::string(missing.what()), "no file /nowhere/a.txt");
  EXPECT_EQ(missing.advice(), "look for it");
  Called({"--data", "/nowhere/a.zip:b.txt"}, families).options.check_values();

  families[1].command.check = [](const experiment::Experiment& /*e*/,
                                 const experiment::FamilyValues& values) {
    if (values.as<Asked>().scores) throw Error(ExitCode::kUsage, "no scores", "leave them out");
  };
  const Called scored({"--scores"}, families);
  testing::failure(ExitCode::kUsage, [&] { scored.options.values(of_task("masked_lm")); });
  scored.options.values(of_task("translation"));
}

TEST(FamilyOptions, SayWhatIsEvaluatedAndHow) {
  EXPECT_TRUE(Called({"--src", "a"}).options.name_data());
  EXPECT_FALSE(Called({"--nbest", "2"}).options.name_data());
  EXPECT_EQ(Called({}).options.data_words("translation"), "--src FILE");
  EXPECT_EQ(Called({}).options.data_words("masked_lm"), "--data FILE");
}

TEST(FamilyOptions, AreWordsAgainForTheProcessesOfAJob) {
  EXPECT_EQ(Called({"--scores", "--data", "a", "--nbest", "2", "--data", "b c"}).options.words(),
            (Words{"--nbest", "2", "--data", "a", "--data", "b c", "--scores"}));
}

// What the families of this program hand in.

using Of = const experiment::FamilyCommand* (*)(const experiment::FamilySpec&);
constexpr Of kCommandsOfFamilies[] = {
    [](const experiment::FamilySpec& family) { return &family.eval; },
    [](const experiment::FamilySpec& family) { return &family.infer; },
    [](const experiment::FamilySpec& family) { return family.embed ? &*family.embed : nullptr; },
};

TEST(FamilyOptions, OfEveryFamilyHaveHelpAndSomebodyWhoTakesTheirValue) {
  for (const Of of : kCommandsOfFamilies) {
    for (const auto& family : commands_of_families(of)) {
      for (const auto& option : family.command.options) {
        EXPECT_NE(option.help, "") << family.family << option.name;
        EXPECT_NE(option.key.empty(), !option.take) << family.family << option.name;
        EXPECT_EQ(option.type.empty(), std::holds_alternative<bool>(option.value)) << option.name;
      }
    }
  }
}

TEST(FamilyOptions, SharedByFamiliesAreSaidOnceWithWhatOneOfThemAdds) {
  for (const Of of : kCommandsOfFamilies) {
    CLI::App app;
    FamilyOptions options(commands_of_families(of));
    options.declare(app);
    for (const auto& family : commands_of_families(of)) {
      for (const auto& one : family.command.options) {
        const std::string said = app.get_option(one.name)->get_description();
        const size_t place = said.find(one.help);
        ASSERT_NE(place, std::string::npos) << family.family << ": " << said;
        EXPECT_EQ(said.find(one.help, place + 1), std::string::npos) << said;
      }
    }
  }
}

}  // namespace
}  // namespace stretto::cli
