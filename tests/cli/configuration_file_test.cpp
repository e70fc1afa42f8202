#include "cli/configuration_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program.h"
#include "tests/search/bench.h"

namespace stretto::cli {
namespace {

using stretto::testing::expect_in;
using stretto::testing::kLearningRate;
using stretto::testing::Program;
using stretto::testing::SearchBench;

TEST(ConfigurationFile, OfAGridIsOneProblemWithItsCommand) {
  const Program program;
  const std::string file = program.folder.write("grid.toml", "[grid]\nbits = [8, 4]\n");
  const std::string said = "error: " + file +
                           ": is a grid of compressed runs, and no configuration of one run\n"
                           "  compress a trained run with it: stretto compress RUN --grid " +
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

TEST(ConfigurationFile, OfASearchIsThatProblemAloneBesideAWrongOverride) {
  const Program program;
  const SearchBench bench;
  const auto refused = [&](const std::string& file) {
    return program.run({"train", file, "--run", "run", "optim.lr=-1"}).err;
  };
  const std::string file = bench.file("", kLearningRate);
  EXPECT_EQ(refused(file), "error: " + file +
                               ": is a search file, and no configuration of one run\n"
                               "  start the search: stretto search " +
                               file + " --dir DIR\n");
  expect_in("optim.lr", refused(bench.config));
}

}  // namespace
}  // namespace stretto::cli
