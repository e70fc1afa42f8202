#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/search/bench.h"

namespace stretto::cli {
namespace {

using stretto::testing::expect_in;
using stretto::testing::kLearningRate;
using stretto::testing::Program;
using stretto::testing::SearchBench;

TEST(SearchCommand, NeedsAFileAndAFolder) {
  const Program program;
  const auto nothing = program.run({"search"});
  EXPECT_EQ(nothing.code, 2);
  expect_in("SPACE.toml is missing", nothing.err);
  const auto no_folder = program.run({"search", "space.toml"});
  EXPECT_EQ(no_folder.code, 2);
  expect_in("--dir is missing", no_folder.err);
}

TEST(SearchCommand, RefusesAFileWithWrongKeysBeforeItMakesAnything) {
  const Program program;
  const SearchBench bench;
  const auto file =
      bench.file("", "[[space]]\nkey = \"optim.lrr\"\nname = \"log\"\nmin=1\nmax=2\n");
  const auto result = program.run({"search", file, "--dir", "found"});
  EXPECT_EQ(result.code, 2);
  expect_in("did you mean `optim.lr`?", result.err);
  EXPECT_FALSE(std::filesystem::exists(program.folder / "found"));
}

TEST(SearchCommand, IsNoProcessOfAJob) {
  const Program program;
  const SearchBench bench;
  const auto file = bench.file("", kLearningRate);
  const auto result = program.shell("OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 " +
                                    testing::shell_quoted(Program::path()) + " search " +
                                    testing::shell_quoted(file) + " --dir found");
  EXPECT_EQ(result.code, 2);
  expect_in("a search is one process", result.err);
}

TEST(SearchCommand, IsNamedWhereItsFileIsTakenForAConfiguration) {
  const Program program;
  const SearchBench bench;
  const auto file = bench.file("", kLearningRate);
  const std::string said = "error: " + file +
                           ": is a search file, and no configuration of one run\n"
                           "  start the search: stretto search " +
                           file + " --dir DIR\n";
  for (const std::vector<std::string>& words : {std::vector<std::string>{"check", file},
                                                {"train", file, "--run", "run"},
                                                {"train", file, "--run", "run", "--seeds", "2"},
                                                {"plan", "--scaling", file, "--world-size", "2"}}) {
    const auto result = program.run(words);
    EXPECT_EQ(result.code, 2) << words[0];
    EXPECT_EQ(result.err, said) << words[0];
  }
  EXPECT_FALSE(std::filesystem::exists(program.folder / "run"));
  const auto json = nlohmann::json::parse(program.run({"check", file, "--json"}).out);
  EXPECT_EQ(json["errors"].size(), 1u);
}

TEST(SearchCommand, TellsAConfigurationOfOneRunWhereItBelongs) {
  const Program program;
  const SearchBench bench;
  const auto result = program.run({"search", bench.config, "--dir", "found"});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.err,
            "error: " + bench.config +
                ": is a configuration of one run, and no search file\n"
                "  name it as search.config in a file of its own; `stretto search describe search` "
                "lists the keys\n");
  EXPECT_FALSE(std::filesystem::exists(program.folder / "found"));
}

TEST(SearchCommand, IsNamedByDescribeForItsOwnKeys) {
  const Program program;
  for (const std::string name : {"search", "space", "search.max_trials", "method.asha"}) {
    const auto result = program.run({"describe", name});
    EXPECT_EQ(result.code, 2) << name;
    expect_in("`stretto search describe " + name + "` explains it", result.err);
  }
}

TEST(SearchCommand, ListsItsSectionsInOneColumnAndHowToSeeTheirKeys) {
  const Program program;
  const auto result = program.run({"search", "describe"});
  EXPECT_EQ(result.code, 0) << result.err;
  expect_in("`stretto search describe SECTION` lists its keys", result.out);
  expect_in("\n  [search]      what is searched", result.out);
  expect_in("\n  [[space]]     a hyperparameter", result.out);
}

TEST(SearchCommand, DescribesItsKeys) {
  const Program program;
  const auto result = program.run({"search", "describe", "method.asha", "search.slots"});
  EXPECT_EQ(result.code, 0) << result.err;
  expect_in("max_rungs", result.out);
  expect_in("slots", result.out);
  const auto wrong = program.run({"search", "describe", "search.slotz"});
  EXPECT_EQ(wrong.code, 2);
  expect_in("did you mean", wrong.err);
}

TEST(SearchCommand, ExplainsOnlyTheFolderOfASearch) {
  const Program program;
  const auto result = program.run({"search", "explain", "nowhere"});
  EXPECT_EQ(result.code, 2);
  expect_in("is no folder of a search", result.err);
}

}  // namespace
}  // namespace stretto::cli
