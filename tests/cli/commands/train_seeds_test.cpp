#include <gtest/gtest.h>

#include "tests/cli/program.h"
#include "tests/search/bench.h"

namespace stretto::cli {
namespace {

using stretto::testing::expect_in;
using stretto::testing::Program;
using stretto::testing::ProgramResult;
using stretto::testing::SearchBench;

class TrainSeeds : public ::testing::Test {
 protected:
  ProgramResult train(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"train", bench_.config, "--run", "five"};
    words.insert(words.end(), more.begin(), more.end());
    return program_.run(words);
  }
  void refuses(const std::vector<std::string>& more, const std::string& said) const {
    const auto result = train(more);
    EXPECT_EQ(result.code, 2) << result.err;
    expect_in(said, result.err);
  }

  Program program_;
  SearchBench bench_;
};

TEST_F(TrainSeeds, RefusesWordsThatAreNoSeeds) {
  refuses({"--seeds", "0"}, "there may be 1 to 1,000 seeds");
  refuses({"--seeds", "1,one"}, "`one` is no whole number");
  refuses({"--seeds", "2", "run.seed=4"}, "both set the seed");
  refuses({"--json"}, "--json goes with --seeds");
  EXPECT_FALSE(std::filesystem::exists(program_.folder / "five"));
}

TEST_F(TrainSeeds, RefusesAConfigurationBeforeItMakesAnything) {
  refuses({"--seeds", "2", "optim.lrr=1"}, "did you mean `optim.lr`?");
  EXPECT_FALSE(std::filesystem::exists(program_.folder / "five"));
}

TEST_F(TrainSeeds, RefusesTheFolderOfASingleRun) {
  program_.write_run("");
  const auto result = program_.run({"train", bench_.config, "--run", "run", "--seeds", "2"});
  EXPECT_EQ(result.code, 2);
  expect_in("holds a single run", result.err);
}

TEST_F(TrainSeeds, KeepASingleRunOutOfTheirFolder) {
  program_.folder.write("five/seeds.json", "{}");
  refuses({}, "holds the runs of several seeds");
  const auto damaged = train({"--seeds", "2"});
  EXPECT_EQ(damaged.code, 65);
  expect_in("five/seeds.json: there is no list of runs", damaged.err);
}

TEST_F(TrainSeeds, AreNoProcessesOfAJob) {
  const auto result = program_.shell("OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 " +
                                     testing::shell_quoted(Program::path()) + " train " +
                                     testing::shell_quoted(bench_.config) + " --seeds 2");
  EXPECT_EQ(result.code, 2);
  expect_in("--seeds starts a process for each seed", result.err);
}

}  // namespace
}  // namespace stretto::cli
